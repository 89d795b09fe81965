// The Neighbors tab: what may be a neighbor, lists under every layer and mix, what they share.
// Filters are applied by the server (it then sends other candidates); mixing happens here.

(function (bw) {
  "use strict";

  const SHOWN = 10; // rows of a list; overlaps count all 20
  const SHORT = { NOUN: "noun", VERB: "verb", ADJ: "adjective", ADV: "adverb" };

  bw.part("table", function (element, { trigger }) {
    let kind = null; // whose mix and layers are listed
    let since = "move"; // what a change of rank is counted from: the last move, or the equal mix
    let isShown = false; // nothing is drawn while another tab is open
    let columns = [];
    let isTouched = false; // the visitor chose the banks

    const title = bw.element("h2", {});
    const where = bw.element("span", { class: "where" });
    const method = bw.element("span", { class: "method" });
    const controls = bw.element("div", { class: "controls" });
    const banks = bw.element("div", { class: "controls banks" });
    const status = bw.element("p", { class: "notice", role: "status" });
    const norms = bw.element("p", { class: "message norms" });
    const lists = bw.element("div", { class: "near-lists" });
    const overlap = bw.element("section", { class: "overlap", "aria-label": "Overlap of the lists" });
    element.replaceChildren(bw.element("section", { class: "table-view" },
      bw.element("header", { class: "view-head" }, title, where, method),
      banks, status, controls, norms, lists, overlap));

    // ---- choices -------------------------------------------------------------------------------

    function choose(change) {
      bw.state.choice = { ...bw.state.choice, ...change };
      element.firstChild.classList.add("stale");
      drawControls();
      bw.emit("busy", true);
      trigger("choose", bw.sent());
    }

    function segmented(label, value, options, use, title) {
      return bw.element("div", { class: "control", title },
        bw.element("span", {}, label),
        bw.element("div", { class: "segmented", role: "group", "aria-label": label },
          ...options.map(([key, text, hint]) => bw.element("button", { type: "button", "data-key": key,
            title: hint, "aria-pressed": String(key === String(value)), onclick: () => use(key) }, text))));
    }

    function drawControls() {
      const { choice } = bw.state;
      const kinds = Object.keys(bw.state.bank.encoders);
      const set = (name) => (key) => choose({ [name]: key });
      bw.refill(controls,
        segmented("words", choice.words, [["any", "all"], ["only", "this one"], ["exclude", "others"]],
          set("words")),
        segmented("part of speech", choice.pos || "any",
          [["any", "any"], ...Object.entries(SHORT)],
          (key) => choose({ pos: key === "any" ? null : key }),
          "only tokens whose part of speech is known: WordNet's illustrated words, and .conllu files"),
        segmented("near by", choice.metric, Object.entries(bw.METRICS), set("metric")),
        segmented("mean", choice.centered, [["true", "removed"], ["false", "kept"]],
          (key) => choose({ centered: key === "true" }),
          "the layers of language models share a strong common direction, which makes every cosine high"),
        segmented("layers", choice.unit, [["false", "as they are"], ["true", "at length 1"]],
          (key) => choose({ unit: key === "true" }),
          "before mixing: a layer with longer vectors outweighs the others at equal s"),
        segmented("lists of", kind, kinds.map((key) => [key, bw.encoderName(key)]), setKind),
        segmented("rank change since", since, [["move", "the last move"], ["equal", "the equal mix"]],
          setSince));
      drawBanks();
    }

    const setKind = (key) => { kind = key; build(); }; // one that is not here: build takes the first

    function setSince(key) {
      since = key;
      columns.forEach((column) => column.rebase());
      drawControls();
      draw();
    }

    function drawBanks() {
      const { choice, pools } = bw.state;
      if (!pools) return;
      const { wordnet, upload } = pools;
      const names = [["text", "your text"], ["examples", "our examples"], ["wordnet", "WordNet"]];
      if (upload) names.push(["upload", upload.name]);
      const isThere = (name) => name !== "wordnet" || wordnet.ready.length > 0;
      const toggles = names.map(([name, text]) => bw.element("button", { type: "button",
        "data-key": name, "aria-pressed": String(choice.pools.includes(name)), disabled: !isThere(name),
        onclick: () => {
          isTouched = true;
          const next = choice.pools.includes(name)
            ? choice.pools.filter((other) => other !== name) : [...choice.pools, name];
          if (next.length) choose({ pools: next });
        } }, text));
      bw.refill(banks,
        bw.element("div", { class: "control" }, bw.element("span", {}, "look in"),
          bw.element("div", { class: "segmented", role: "group", "aria-label": "look in" }, ...toggles)),
        bw.element("button", { type: "button", class: "pill", onclick: openFile,
          title: ".txt .csv .tsv .jsonl .conllu; read once and deleted; kept in memory for you alone" },
        upload ? "another file \u2026" : "your file \u2026"));
      const text = statusText();
      status.textContent = text;
      status.hidden = !text;
    }

    function statusText() {
      const { pools, uploading } = bw.state;
      const { wordnet, upload } = pools;
      const parts = [];
      if (uploading && uploading.error) parts.push(uploading.error);
      else if (uploading && uploading.total) {
        parts.push(`${uploading.name}: ${Math.round((100 * uploading.done) / uploading.total)} % encoded`);
      }
      if (upload) parts.push(...upload.notices);
      if (bw.state.choice.upload && !upload) {
        parts.push("Your file is no longer kept here: choose it again.");
      }
      const whose = wordnet.encoder ? ` for ${bw.encoderName(wordnet.encoder)}` : "";
      if (wordnet.state === "building") {
        const share = wordnet.total ? Math.min(99, Math.round((100 * wordnet.done) / wordnet.total)) : 0;
        const left = wordnet.seconds_left ? `, about ${timeText(wordnet.seconds_left)} left` : "";
        parts.push(wordnet.message ? `WordNet${whose}: ${wordnet.message}.`
          : `WordNet\u2019s examples are being encoded once${whose}: ${share} %${left}.`);
      } else if (wordnet.state === "opening") parts.push(`WordNet\u2019s examples are being opened${whose} \u2026`);
      else if (wordnet.state === "absent" || wordnet.state === "failed") parts.push(wordnet.message);
      return parts.join(" ");
    }

    const timeText = (seconds) => (seconds < 90 ? `${seconds} s` : `${Math.round(seconds / 60)} min`);

    function openFile() {
      const input = document.querySelector("#upload-file input[type=file]")
        || document.querySelector("input#upload-file");
      if (input) input.click();
    }

    // ---- lists ---------------------------------------------------------------------------------

    function build() {
      const { lead, encoders } = bw.state.bank;
      if (!encoders[kind]) kind = lead;
      const others = Object.keys(encoders).filter((key) => key !== kind);
      const layers = Array.from({ length: encoders[kind].n_layers }, (_, k) => k);
      columns = [
        { encoder: kind, layer: null, name: `${bw.encoderName(kind)} mix` },
        ...layers.map((layer) => ({ encoder: kind, layer, name: `Layer ${layer}` })),
        ...others.map((key) => ({ encoder: key, layer: null, name: `${bw.encoderName(key)} mix` })),
      ].map((column) => makeList(column, trigger, () => since));
      lists.replaceChildren(...columns.map((column) => column.element));
      drawControls();
      draw();
    }

    function draw() {
      const { run, chosen, near } = bw.state;
      if (!near || !run || !isShown) return;
      const word = bw.chosenWord();
      const tokens = run.sentences[chosen.sentence];
      const [left, , right] = bw.context({ tokens, token: chosen.token }, 60);
      title.replaceChildren("Who keeps company with ", bw.element("em", {}, word), "?");
      where.replaceChildren("in \u201c", left, bw.element("b", {}, word), right, "\u201d");
      method.textContent = `${bw.poolsText()} \u00b7 ${bw.nearText()}`
        + (bw.isWaiting() ? " \u00b7 reading WordNet \u2026" : "");
      columns.forEach((column) => column.draw());
      drawOverlap();
      drawNorms();
      element.firstChild.classList.toggle("stale", bw.isWaiting());
    }

    /** The norm trap, with this token's own numbers, and what is certain about the lists. */
    function drawNorms() {
      const set = bw.candidatesOf(kind);
      if (!set) return norms.replaceChildren();
      const L = bw.state.bank.encoders[kind].n_layers;
      const own = set.norm.filter((_, p) => isDiagonal(p, L)).map((x) => Math.sqrt(Math.max(x, 0)));
      const lengths = own.map((x) => x.toFixed(x < 10 ? 1 : 0)).join(" \u00b7 ");
      const trap = bw.state.near.choice.unit
        ? "Every layer has length 1 before mixing, so equal s is equal weight."
        : `This token\u2019s layers are ${lengths} long: equal s is not equal influence, the longest layer`
          + " weighs most. \u201cAt length 1\u201d undoes that.";
      norms.replaceChildren(trap, " ", certainty(set));
    }

    function certainty({ exact, n_rows: rows, n_mixes: mixes, M }) {
      const many = rows.toLocaleString("en");
      return exact
        ? `The ${bw.state.near.k} nearest of ${many} are exact for every mix; ${M.toLocaleString("en")}`
          + " tokens are held here for that."
        : `Too many tokens of ${many} could be among the nearest under some mix: these lists are exact`
          + ` at ${mixes} mixes all over the triangle, and nearly so between them.`;
    }

    const isDiagonal = (p, L) => {
      for (let k = 0, at = 0; k < L; at += L - k, k++) if (p === at) return true;
      return false;
    };

    function drawOverlap() {
      const keys = columns.map((column) => column.keys());
      const short = (column) => (column.layer === null ? bw.encoderName(column.encoder) : `layer ${column.layer}`);
      const head = bw.element("tr", {}, bw.element("td", {}),
        ...columns.map((column) => bw.element("th", { scope: "col" }, short(column))));
      const rows = columns.map((column, i) => bw.element("tr", {},
        bw.element("th", { scope: "row" }, short(column)),
        ...columns.map((_, j) => {
          const share = bw.jaccard(keys[i], keys[j]);
          const cell = bw.element("td", { class: "cell" }, i === j ? "" : share.toFixed(2).replace(/^0/, ""));
          if (i !== j) cell.style.setProperty("--strength", `${Math.round(100 * share)}%`);
          return cell;
        })));
      overlap.replaceChildren(
        bw.element("header", { class: "row-head" }, bw.element("h3", {}, "How much do the lists share?"),
          bw.element("span", { class: "method" }, "Jaccard: tokens in both of two lists of 20, by those in either")),
        bw.element("table", {}, bw.element("thead", {}, head), bw.element("tbody", {}, ...rows)));
    }

    // ---- what happens --------------------------------------------------------------------------

    bw.option("lists", () => kind || bw.state.bank.lead, setKind);
    bw.option("rank_change", () => since, (key) => ["move", "equal"].includes(key) && setSince(key));
    bw.on("choice", () => { // of a link
      isTouched = true;
      drawControls();
    });
    bw.on("near", () => {
      columns.forEach((column) => column.rebase());
      draw();
    });
    bw.on("weights", (changed) => {
      if (!isShown || !bw.state.near) return;
      for (const column of columns) {
        if (column.layer === null && column.encoder === changed) column.draw();
      }
      drawOverlap();
    });
    bw.on("settled", (changed) => columns.forEach((column) => column.encoder === changed && column.rest()));
    bw.on("chosen", () => element.firstChild.classList.add("stale"));
    bw.on("uploading", (step) => {
      if (step.digest) {
        const { pools } = bw.state.choice;
        choose({ upload: step.digest, pools: pools.includes("upload") ? pools : [...pools, "upload"] });
      } else drawBanks();
    });
    bw.on("pools", () => {
      const { wordnet } = bw.state.pools;
      const { pools } = bw.state.choice;
      const isRead = wordnet.state !== "building" && wordnet.state !== "opening";
      if (isRead && wordnet.ready.length && !isTouched && !pools.includes("wordnet")) {
        isTouched = true;
        choose({ pools: [...pools, "wordnet"] });
      }
      drawBanks();
    });
    bw.asksForMore(element, trigger);
    new ResizeObserver(() => {
      const wasShown = isShown;
      isShown = element.clientWidth > 0;
      if (isShown && !wasShown) draw();
    }).observe(element);
    bw.whenKnown(build);
    if (bw.state.pools) bw.emit("pools");
  });

  // ---- one list ----------------------------------------------------------------------------------

  function makeList(column, trigger, since) {
    const note = bw.element("small", {});
    const message = bw.element("p", { class: "message", hidden: true });
    const rows = Array.from({ length: SHOWN }, () => makeRow(trigger));
    const element = bw.element("section", { class: "list near-list", "data-encoder": column.encoder,
      "data-layer": column.layer === null ? "mix" : column.layer },
    bw.element("h4", {}, column.name, " ", note), message,
    bw.element("ol", {}, ...rows.map((row) => row.element)));
    let base = null; // ranks by candidate that changes are counted from, or null
    let last = null; // shares that were drawn last
    let isResting = true;
    let found = [];

    /** Rank of every candidate under shares s, from 0. */
    function ranks(set, s) {
      const order = bw.rank(set, s, bw.gammaOf(column), set.M);
      const result = new Int32Array(set.M);
      order.forEach(({ index }, rank) => { result[index] = rank; });
      return result;
    }

    function rebase() {
      const set = column.layer === null && bw.candidatesOf(column.encoder);
      const L = bw.weights[column.encoder].s.length;
      base = set && since() === "equal" ? ranks(set, new Array(L).fill(1 / L)) : null;
      last = null;
    }

    function draw() {
      note.textContent = bw.noteOf(column);
      const set = bw.candidatesOf(column.encoder);
      const s = bw.sharesOf(column);
      if (set && column.layer === null && since() === "move" && last && isResting
        && s.some((x, k) => x !== last[k])) base = ranks(set, last);
      isResting = isResting && (!last || s.every((x, k) => x === last[k]));
      last = [...s];
      found = set ? bw.rank(set, s, bw.gammaOf(column), bw.state.near.k) : [];
      message.hidden = found.length > 0;
      const gap = bw.state.run.encoders[column.encoder].message;
      message.textContent = set ? "No token fits these filters." : gap || "Nothing to look in yet.";
      rows.forEach((row, i) => {
        row.element.hidden = !found[i];
        if (!found[i]) return;
        const { index, score } = found[i];
        const before = base ? base[index] : null;
        row.show(i, bw.placeOf(set, index), score, found[0].score, before);
      });
    }

    function keys() {
      const set = bw.candidatesOf(column.encoder);
      return set ? found.map(({ index }) => bw.placeOf(set, index).key) : [];
    }
    return { ...column, element, draw, rebase, keys, rest: () => { isResting = true; } };
  }

  /** Two lines: rank, sentence with the token marked, similarity; below, what is known of it. */
  function makeRow(trigger) {
    const rank = bw.element("span", { class: "rank" });
    const move = bw.element("span", { class: "move" });
    const left = document.createTextNode("");
    const right = document.createTextNode("");
    const word = bw.element("b", {});
    const score = bw.element("span", { class: "score" });
    const bar = bw.element("i", { class: "bar" });
    const gloss = bw.element("small", { class: "gloss" });
    let place = null;
    const button = bw.element("button", { type: "button", class: "neighbor two-lines",
      onclick: () => bw.visit(place, trigger) },
    rank, bw.element("span", { class: "context" }, left, word, right), bar, score, move, gloss);
    const element = bw.element("li", {}, button);

    function show(index, next, value, best, before) {
      rank.textContent = index + 1;
      score.textContent = bw.scoreText(value);
      bar.style.setProperty("--share", bw.barShare(value, best).toFixed(3));
      const [text, title] = moveText(index, before);
      move.textContent = text;
      move.title = title;
      if (place === next) return;
      place = next;
      const [before_, token, after] = bw.context(place, 22);
      left.data = before_;
      word.textContent = token;
      right.data = after;
      gloss.textContent = about(place);
      button.title = `${bw.fullText(place)}${place.tag ? `\n${tagText(place.tag)}` : ""}`;
    }
    return { element, show };
  }

  /** How far a row moved: "\u25b23", "\u25bc2", "new", or nothing. */
  function moveText(index, before) {
    if (before === null || before === index) return ["", ""];
    if (before >= bw.state.near.k) return ["new", `was not among the ${bw.state.near.k} nearest`];
    const by = before - index;
    return [`${by > 0 ? "\u25b2" : "\u25bc"}${Math.abs(by)}`, `was number ${before + 1}`];
  }

  const tagText = ([lemma, pos, gloss, supersense]) =>
    [`${lemma}${pos ? ` (${SHORT[pos] || pos})` : ""}`, gloss, supersense].filter(Boolean).join(" \u00b7 ");

  function about({ pool, number, tag }) {
    if (tag && tag[2]) return tag[1] ? `${SHORT[tag[1]] || tag[1]}: ${tag[2]}` : tag[2];
    if (tag && tag[1]) return SHORT[tag[1]] || tag[1];
    if (pool === "text") return `your sentence ${number + 1}`;
    if (pool === "upload") return `your file, sentence ${number + 1}`;
    return pool === "wordnet" ? "WordNet, untagged" : "our example";
  }
})(window.bothways);
