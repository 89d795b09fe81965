// A typed word's letters, and two versions of one sentence.

(function (bw) {
  "use strict";

  const form = (label, button, input, send) => {
    const node = bw.element("form", { class: "controls word-form" }, input,
      bw.element("button", { type: "submit", class: "pill" }, button));
    input.setAttribute("aria-label", label);
    node.addEventListener("submit", (event) => {
      event.preventDefault();
      send();
    });
    return node;
  };

  bw.part("spelling", function (element, { trigger }) {
    const input = bw.element("input", { type: "text", value: "blorping", maxlength: 50 });
    const body = bw.element("div", {});
    const ask = bw.asks(element, trigger, ["encoders"], () => (input.value.trim() ? { word: input.value.trim() } : null));
    element.replaceChildren(bw.wordSection("A word nobody wrote: what do its letters say?",
      "layer 0, cosine, our examples' mean removed; \u2039 and \u203a are the ends of the word",
      form("a word", "Show", input, () => ask()), body));
    bw.on("spelling", (view) => {
      body.replaceChildren(bw.element("div", { class: "word-lists" },
        ...Object.entries(view.encoders).flatMap(([kind, found]) => [bw.encoderHead(kind),
          column("nearest words", `\u201c${view.word}\u201d stands in our examples ${found.n_in_examples} times${trained(found.target)}`,
            bw.nearList(found.near)),
          column("its other forms", "cosine to the word", list(found.forms.map(([text, how, cosine]) =>
            [text, how, cosine.toFixed(2)]))),
          column("filters that fire", "standard deviations above their usual", list(found.filters.map((filter) =>
            [filter.letters, `${filter.width} wide, no. ${filter.index}`, filter.above.toFixed(1)])))])));
    });
  });

  bw.part("edit", function (element, { trigger }) {
    const input = bw.element("input", { type: "text", class: "sentence", maxlength: 2000 });
    const body = bw.element("div", {});
    let filled = "";
    const fill = () => {
      const own = bw.state.run ? bw.state.run.sentences[bw.state.chosen.sentence].join(" ") : "";
      if (filled === own) return;
      filled = input.value = own;
      body.replaceChildren();
    };
    bw.on("run", fill);
    bw.on("chosen", fill);
    bw.on("encoders", () => body.replaceChildren()); // what it told was of other encoders
    element.replaceChildren(bw.wordSection("Edit the sentence: which vectors move, and how far?",
      "distance over the vector's length; the same word in both versions",
      form("the edited sentence", "Compare", input, () => {
        bw.emit("busy", true);
        trigger("ask", { ...bw.state.chosen, text: input.value });
      }), body));
    bw.on("edited", (view) => view.before.join(" ") === filled && body.replaceChildren(...Object.entries(view.encoders).map(([kind, found]) =>
      found.gap ? bw.element("p", { class: "notice" }, found.gap) : table(kind, found, view))));
    fill();

    function table(kind, found, view) {
      const n = found.pairs.length;
      const distance = bw.unpack(found.distance);
      const zero = Uint8Array.from(atob(found.zero), (c) => c.charCodeAt(0));
      const L = found.n_layers;
      const counts = found.parts.map((part, p) =>
        `${part} ${found.n_zero[p].map((count, k) => `${k}: ${count}`).join(", ")}`);
      const rows = Array.from({ length: L }, (_, k) => found.parts.map((part, p) => [[`layer ${k} ${part}`],
        found.pairs.map((_, i) => {
          const at = (p * L + k) * n + i;
          return zero[at] ? "exactly 0" : bw.figure(distance[at]);
        })])).flat();
      return bw.element("div", { class: "scroll" }, bw.valuesTable(
        [bw.encoderHead(kind), ` exactly 0 among ${n} shared words, by layer: ${counts.join("; ")}`],
        found.pairs.map(([, after]) => [view.after[after], kind]), rows));
    }
  });

  const trained = (rank) => (rank === 0 ? "" : rank === null ? "; training never asked for it: it is not in the vocabulary"
    : `; in training it was word ${rank.toLocaleString("en")} by frequency`);

  const column = (title, note, child) => bw.element("div", {}, bw.element("b", {}, title), " ",
    bw.element("small", {}, note), child);
  const list = (rows) => bw.element("ol", { class: "near" }, ...rows.map(([text, note, value]) =>
    bw.element("li", {}, bw.element("span", {}, text, " ", bw.element("small", {}, note)),
      bw.element("span", {}, value))));
})(window.bothways);
