// The page that was taken home: the app's own parts, told by the file instead of the server. What
// the file does not hold is refused in a sentence.

(function (bw) {
  "use strict";

  const TABS = [["maps", "Maps"], ["neighbors", "Neighbors"]];
  const { messages, maps, paints, tokens, ...told } = JSON.parse(document.getElementById("told").textContent);
  const { encoders } = messages[0].bank;
  const kinds = Object.keys(encoders);
  for (const { encoders: rows } of Object.values(maps)) {
    for (const { behind } of Object.values(rows)) {
      for (const name of ["coordinates", "depth"]) {
        if (behind && behind[name]) behind[name] = widened(behind[name]);
      }
    }
  }
  document.body.classList.toggle("dark", window.matchMedia("(prefers-color-scheme: dark)").matches);

  const box = (id, ...children) => bw.element("div", { id }, ...children);
  const said = bw.element("p", { class: "said notice", role: "status", hidden: true });
  const panels = {
    maps: bw.element("div", { class: "tabitem", role: "tabpanel" }, box("question"),
      ...kinds.slice(0, 2).map((kind) => box(`maps-${kind}`)), box("caught"), box("lists"),
      ...kinds.slice(2).map((kind) => box(`maps-${kind}`))),
    neighbors: bw.element("div", { class: "tabitem", role: "tabpanel" }, box("table")),
  };
  const tabs = TABS.map(([id, name]) => bw.element("button", { type: "button", role: "tab",
    "data-tab-id": id, onclick: () => openTab(id) }, name));
  document.body.append(
    bw.element("header", { class: "top" }, bw.element("h1", {}, "Both Ways"),
      bw.element("span", { class: "tagline" }, "taken home: maps, mixes and neighbors of one text, without a server")),
    box("workbench", box("bench", box("strip"), box("mixing")),
      box("views", box("tabs",
        bw.element("div", { class: "tab-container", role: "tablist" }, ...tabs), ...Object.values(panels)))),
    said);

  function openTab(id) {
    for (const tab of tabs) {
      const isOpen = tab.dataset.tabId === id;
      tab.setAttribute("aria-selected", String(isOpen));
      tab.classList.toggle("selected", isOpen);
      panels[tab.dataset.tabId].hidden = !isOpen;
    }
    said.hidden = true;
  }

  /** Examples behind the maps have 16 bits a coordinate in the file, the page unpacks 32. */
  function widened([step, text]) {
    const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    const wide = Float32Array.from(new Int16Array(bytes.buffer), (x) => x * step);
    return btoa(Array.from(new Uint8Array(wide.buffer), (byte) => String.fromCharCode(byte)).join(""));
  }

  function refuse(sentence) {
    said.textContent = sentence;
    said.hidden = false;
    bw.emit("busy", false);
  }

  // ---- the server's place ----------------------------------------------------------------------

  let shown = null; // the token whose neighbors are on the page
  let basis = null;

  function answer(event, sent) {
    said.hidden = true;
    if (event === "select") select(sent);
    else if (event === "basis") setBasis(sent);
    else if (event === "paint") paint(sent.color);
    else if (event === "visit") refuse("Another sentence needs the app: this file holds one text.");
    else if (event === "choose") {
      bw.state.choice = messages[1].opened.choice;
      bw.emit("choice");
      tell({ near: at(shown).near });
      refuse("Other banks, filters and measures need the app: this file holds the neighbors as they were chosen.");
    }
  }

  const at = ({ sentence, token }) => tokens[`${sentence} ${token}`]
    || (isFirst(sentence, token) ? messages[1] : null);
  const isFirst = (s, t) => messages[1].query.sentence === s && messages[1].query.token === t;

  function select({ sentence, token }) {
    const views = at({ sentence, token });
    if (!views) {
      bw.choose(shown.sentence, shown.token);
      tell({ query: at(shown).query, near: at(shown).near });
      refuse(`The neighbors of this token need the app: this file holds those of ${1 + Object.keys(tokens).length} tokens.`);
      return;
    }
    shown = { sentence, token };
    tell({ query: views.query, near: views.near });
    if (basis === "word" && !ownAxes()) showBasis("all");
  }

  /** The word's axes are those of the word that was chosen when the file was made. */
  function ownAxes() {
    const { sentence, token } = messages[1].query;
    return bw.sameWord(messages[1].run.sentences[sentence][token], bw.chosenWord());
  }

  function setBasis(wanted) {
    const found = maps[wanted.basis];
    const same = wanted.basis === basis ? ["dims", "seed", "behind"] : ["dims", "seed"];
    if (!found || same.some((name) => found[name] !== wanted[name])) {
      refuse("These maps need the app: this file holds other ones.");
    } else if (wanted.basis === "word" && !ownAxes()) refuse("The axes of another word need the app.");
    else return showBasis(wanted.basis);
    tell({ maps: maps[basis] });
  }

  /** Examples are behind the maps on some axes only. */
  function showBasis(name) {
    if (maps[basis].behind && !maps[name].behind) {
      refuse("Examples behind the maps on these axes need the app: this file holds them on the first ones.");
    }
    tell({ maps: maps[basis = name] });
  }

  function paint(color) {
    const { place } = paints[color];
    if (!place || bw.isChosen(...place)) return tell({ paint: paints[color] });
    bw.setOptions({ ...bw.changedOptions(), color: "word" });
    refuse("This color needs the app for another token.");
  }

  let read = null;
  const news = { value: null };

  /** As from the server: what is told is read anew, since the page unpacks it in place. */
  function tell(message) {
    news.value = JSON.stringify(message);
    read();
  }

  const mount = (name, id, options) => bw.mount(name, document.getElementById(id),
    { trigger: answer, props: {}, watch: () => {}, ...options });
  bw.mount("feed", bw.element("div"), { trigger: answer, props: news, watch: (_, fn) => { read = fn; } });
  tell(messages[0]);
  openTab("maps");
  for (const name of ["question", "strip", "mixing", "caught", "lists", "table"]) mount(name, name);
  for (const kind of kinds) mount("maps", `maps-${kind}`, { encoder: kind });
  const { query } = messages[1];
  shown = { sentence: query.sentence, token: query.token };
  basis = told.basis;
  tell({ ...messages[1], maps: maps[basis] });
})(window.bothways);
