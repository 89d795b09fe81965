// The lecture: a bar at the foot of the page that asks, waits, and shows. Arrow keys and a
// presenter's remote (page keys) walk; every step sets up the whole page, so one can jump.

(function (bw) {
  "use strict";

  bw.part("lecture", function (element, { trigger, props }) {
    const { steps, limits } = JSON.parse(props.value);
    let at = -1; // the step, -1 while no lecture is on
    let revealed = false;
    let axes = null; // of the maps, as asked for last

    const minute = bw.element("span", { class: "minute" });
    const title = bw.element("b", {});
    const predict = bw.element("p", { class: "predict" });
    const look = bw.element("p", { class: "look" });
    const button = (text, label, action) =>
      bw.element("button", { type: "button", "aria-label": label, title: label, onclick: action }, text);
    const back = button("\u2190", "back", () => walk(-1));
    const next = button("\u2192", "next", () => walk(1));
    const bar = bw.element("section", { class: "lecture-bar", "aria-label": "Lecture", hidden: true },
      bw.element("div", { class: "where" }, minute, title),
      bw.element("div", { class: "words", "aria-live": "polite" }, predict, look),
      bw.element("nav", {}, back, next,
        button("Notes", "lecturer's notes", () => notes.showModal()),
        button("Full screen", "the page fills the screen", bw.fullScreen),
        button("\u00d7", "end the lecture", leave)));
    const notes = bw.element("dialog", { class: "cards notes", "aria-label": "Lecturer's notes" },
      bw.element("button", { type: "button", class: "close", "aria-label": "close",
        onclick: () => notes.close() }, "\u00d7"),
      bw.element("h2", {}, "Lecturer\u2019s notes"),
      bw.element("ol", {}, ...steps.map((step, i) => bw.element("li", {},
        bw.element("h3", {}, button(`${step.minute}  ${step.title}`, `go to step ${i + 1}`, () => {
          notes.close();
          show(i, false);
        })),
        bw.element("p", {}, bw.element("b", {}, "Ask. "), step.predict),
        bw.element("p", {}, bw.element("b", {}, "See. "), step.look),
        bw.element("p", {}, step.notes)))),
      bw.element("h3", {}, "What does not work, and why"),
      bw.element("ul", {}, ...limits.map((text) => bw.element("li", {}, text))));
    notes.addEventListener("click", (event) => event.target === notes && notes.close());
    element.replaceChildren(bar, notes);

    function show(index, isRevealed) {
      const entered = index !== at;
      at = index;
      revealed = isRevealed;
      const step = steps[at];
      const state = step.states[Number(revealed)];
      document.body.classList.add("lecture");
      bar.hidden = false;
      minute.textContent = `${at + 1} / ${steps.length} \u00b7 ${step.minute}`;
      title.textContent = step.title;
      predict.textContent = step.predict;
      look.textContent = revealed ? step.look : "Predict first.";
      bar.classList.toggle("revealed", revealed);
      back.disabled = at === 0 && !revealed;
      next.disabled = at === steps.length - 1 && revealed;
      bw.openTab(step.tab);
      if (entered || state.axes !== axes) {
        axes = state.axes;
        bw.emit("busy", true);
        trigger("step", { step: at, revealed });
      }
      setMix(state);
      window.dispatchEvent(new Event("resize")); // letters and plots have another size now
      if (entered) requestAnimationFrame(() => bringUp(step));
    }

    /** A step about what lies further down in its tab begins there, every other one at the top. */
    function bringUp({ id, tab }) {
      const below = id !== tab && document.querySelector(`#tabs #${CSS.escape(id)}`);
      if (below) below.scrollIntoView();
      else window.scrollTo(0, 0);
    }

    /** Shares of three layers for an encoder of any depth: the lowest, the highest, and between. */
    function fitted(shares, L) {
      if (shares.length === L) return shares;
      if (L === 1 || shares.every((s) => Math.abs(s - shares[0]) < 0.01)) return new Array(L).fill(1 / L);
      const inner = shares.slice(1, -1).reduce((a, b) => a + b, 0);
      const between = L > 2 ? inner / (L - 2) : 0;
      const end = (s) => s + (L > 2 ? 0 : inner / 2);
      return Array.from({ length: L }, (_, k) =>
        k === 0 ? end(shares[0]) : k === L - 1 ? end(shares[shares.length - 1]) : between);
    }

    function setMix({ shares, gamma, sweep }) {
      bw.emit("taken"); // ends a sweep that still runs
      for (const kind of Object.keys(bw.weights)) {
        const s = fitted(shares, bw.weights[kind].w.length);
        bw.setWeights(kind, { w: bw.rawWeights(s), gamma });
      }
      const button = document.querySelector("#mixing .sweep");
      if (sweep && button) button.click();
    }

    /** One key forward: the answer, then the next question. */
    function walk(way) {
      if (way > 0) {
        if (!revealed) show(at, true);
        else if (at < steps.length - 1) show(at + 1, false);
      } else if (revealed) show(at, false);
      else if (at > 0) show(at - 1, true);
    }

    function leave() {
      at = -1;
      revealed = false;
      bar.hidden = true;
      document.body.classList.remove("lecture");
      window.dispatchEvent(new Event("resize"));
    }

    const WAYS = { ArrowRight: 1, PageDown: 1, ArrowLeft: -1, PageUp: -1 };
    document.addEventListener("keydown", (event) => {
      if (at < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
      if (document.querySelector("dialog[open]")) return; // keys are the dialog's
      // Arrows belong to what has the focus if it uses them: text, sliders, tokens, tabs, maps.
      const own = event.target.closest
        && event.target.closest("input, textarea, select, [role=slider], [role=tab], #strip, [data-arrows]");
      const isPage = event.key.startsWith("Page");
      if (event.key in WAYS && (isPage || !own)) {
        event.preventDefault();
        walk(WAYS[event.key]);
      } else if (event.key === "Escape" && !document.fullscreenElement) {
        leave();
      }
    });
    bw.on("lecture", () => show(Math.max(at, 0), revealed));
  });

  /** Opens a tab by its id, which is its name in small letters. Tabs for which the page is too narrow
   *  are in a menu, where they have no id. */
  bw.openTab = function (id) {
    const named = [...document.querySelectorAll("#tabs .overflow-dropdown button")].find((button) =>
      button.textContent.trim().toLowerCase() === id);
    const tab = document.querySelector(`#tabs [role=tab][data-tab-id="${CSS.escape(id)}"]`) || named;
    if (tab && tab.getAttribute("aria-selected") !== "true") tab.click();
  };

  /** The whole page fills the screen, or no longer does. */
  bw.fullScreen = function () {
    if (document.fullscreenElement) document.exitFullscreen();
    else document.documentElement.requestFullscreen().catch(() => {});
  };
})(window.bothways);
