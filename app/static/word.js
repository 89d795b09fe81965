// One word in many sentences, and its sentence by layer: cosines, values, lengths.

(function (bw) {
  "use strict";

  const NAMES = { bilm: "ELMo", attention_concat: "Concatenated attention", attention: "Joint attention" };
  const LISTS = [
    ["spelling", "layer 0", "knows letters only: what is spelled alike"],
    ["average", "average over contexts", "one list for all of the word's senses"],
    ["context", "in this sentence", "last layer, this token alone"],
  ];
  const CELL = { least: 0.56, most: 1.76, room: 17.6 }; // of heat maps, in sizes of the letters
  const STRIP = { height: 14 };

  const fixed = (x) => (x === null ? "\u2013" : x.toFixed(2));
  const quote = (word) => `\u201c${word}\u201d`;
  const kindsOf = (view) => Object.keys(view.encoders);
  const section = (title, method, ...children) => bw.element("section", { class: "word-view" },
    bw.element("header", { class: "view-head" }, bw.element("h2", {}, title),
      bw.element("span", { class: "method" }, method)), ...children);
  const name = (kind) => bw.element("h3", { "data-encoder": kind }, NAMES[kind] || kind);

  bw.part("word", function (element, { trigger }) {
    let centered = true;
    let part = 0; // whole, forward or backward
    const layers = bw.element("div", {});
    const lists = bw.element("div", {});
    const halves = control("half", [[0, "whole"], [1, "forward half"], [2, "backward half"]], () => part, (value) => {
      part = value;
      draw();
    });
    const cosine = control("cosine", [[true, "mean removed"], [false, "plain cosine"]], () => centered, (value) => {
      centered = value;
      ask();
    });
    const blocks = bw.element("div", {});
    const inside = section("Who is like whom in this sentence, layer by layer?",
      "full color is a cosine of 1, the ground 0 or less",
      bw.element("div", { class: "controls" }, halves, cosine), blocks);
    inside.hidden = true; // until there is something to see
    element.replaceChildren(layers, lists, inside);

    const ask = bw.asks(element, trigger, ["run", "chosen"], () => ({ ...bw.state.chosen, centered }));
    bw.on("word", draw);
    bw.redraws(element, draw);

    /** Buttons of which one is pressed. choices: [value, text]; get(): the value now; set(value). */
    function control(label, choices, get, set) {
      const buttons = choices.map(([value, text]) => bw.element("button", { type: "button", onclick: () => {
        set(value);
        mark();
      } }, text));
      const mark = () => buttons.forEach((button, i) =>
        button.setAttribute("aria-pressed", String(choices[i][0] === get())));
      mark();
      return bw.element("div", { class: "segmented", role: "group", "aria-label": label }, ...buttons);
    }

    function draw() {
      const view = bw.state.word;
      if (!element.clientWidth || !view || !view.encoders || !bw.isChosen(view.sentence, view.token)) return;
      drawLayers(view);
      drawLists(view);
      drawInside(view);
    }

    function drawLayers(view) {
      const kinds = kindsOf(view).filter((kind) => !view.encoders[kind].gap);
      const word = bw.chosenWord();
      const tables = kinds.map((kind) => {
        const found = view.encoders[kind];
        const columns = found.n_points.map((_, k) => [`layer ${k}`, kind]);
        const minus = (values) => values.map((x, k) => fixed(x === null ? null : x - found.baseline[k]));
        return bw.element("div", { class: "scroll" }, bw.valuesTable(
          [bw.element("b", {}, NAMES[kind] || kind), ` ${found.n} copies in ${found.n_sentences} sentences;`
            + ` ${found.n_random} random tokens`],
          columns, [
            [["different points"], found.n_points.map((n) => (n === 1 ? ["1", ` \u00d7${found.n}`] : String(n)))],
            [["farthest two copies"], found.farthest.map((x) => (x === 0 ? "exactly 0" : bw.figure(x)))],
            [["copies alike"], found.similarity.map(fixed)],
            [["\u2026 less random tokens"], minus(found.similarity)],
            [["sentence alike"], found.within.map(fixed)],
            [["\u2026 less random tokens"], minus(found.within)],
            [["random tokens alike"], found.baseline.map(fixed)],
          ]));
      });
      const first = kinds.map((kind) => view.encoders[kind])[0];
      const answer = !first ? "" : first.n === 1
        ? `${quote(word)} stands here once: no copy to compare it with.`
        : `In layer 0 all ${first.n} copies of ${quote(word)} are `
          + (first.farthest[0] === 0 ? "one and the same point; above it, " : "not one point; above it, ")
          + `${first.n_points[first.n_points.length - 1]} different ones.`;
      layers.replaceChildren(section("One word, many sentences: when do its copies part?",
        `average cosine (Ethayarajh 2019); your text and our examples; at most ${view.cap} copies`,
        bw.element("p", { class: "answer" }, answer), bw.element("div", { class: "word-tables" }, ...tables),
        ...gaps(view)));
    }

    const gaps = (view) => kindsOf(view).filter((kind) => view.encoders[kind].gap).map((kind) =>
      bw.element("p", { class: "notice" }, `${NAMES[kind] || kind}: ${view.encoders[kind].gap}`));

    function drawLists(view) {
      const kinds = kindsOf(view).filter((kind) => view.encoders[kind].lists);
      lists.replaceChildren(section("One vector a word, or one a sentence?",
        "cosine, our examples' mean removed; every other word once",
        bw.element("div", { class: "word-lists" }, ...kinds.flatMap((kind) => [name(kind),
          ...LISTS.map(([key, title, wrong]) => bw.element("div", {}, bw.element("b", {}, title), " ",
            bw.element("small", {}, wrong), nearList(view.encoders[kind].lists[key])))]))));
    }

    function drawInside(view) {
      const kinds = kindsOf(view).filter((kind) => view.encoders[kind].inside);
      const tokens = bw.state.run.sentences[view.sentence];
      const long = tokens.length > view.max_tokens && bw.element("p", { class: "notice" },
        `This sentence has ${tokens.length} tokens; this view takes ${view.max_tokens} at most.`);
      inside.hidden = false;
      blocks.replaceChildren(...kinds.map((kind) => sentenceOf(kind, view.encoders[kind].inside, tokens, view.token)),
        ...(long ? [long] : []));
    }

    function sentenceOf(kind, view, tokens, token) {
      const T = tokens.length;
      const shown = Math.min(part, view.parts.length - 1);
      const cosines = bw.unpack(view.cosines);
      const norms = bw.unpack(view.norms);
      const values = bw.unpack(view.values);
      const pixels = (sizes) => Math.round(sizes * bw.size("small"));
      const cell = Math.max(pixels(CELL.least), Math.min(pixels(CELL.most), Math.floor(pixels(CELL.room) / T)));
      const note = view.parts.length === 1 && part > 0 ? " has no halves: whole" : "";
      const maps = Array.from({ length: view.n_layers }, (_, k) => {
        const start = (shown * view.n_layers + k) * T * T;
        return bw.element("div", {}, heatMap(kind, `layer ${k}`, cosines.subarray(start, start + T * T), tokens, token, cell),
          lengths(kind, norms.subarray(k * T, (k + 1) * T), tokens, cell));
      });
      const strips = Array.from({ length: view.n_layers }, (_, k) => bw.element("div", { class: "strip-row" },
        bw.element("span", {}, `layer ${k}`),
        strip(kind, values.subarray(k * view.d_model, (k + 1) * view.d_model), view.parts.length > 1),
        bw.element("small", {}, `length ${bw.figure(norms[k * T + token])}`
          + `, sentence ${bw.figure(mean(norms.subarray(k * T, (k + 1) * T)))}`)));
      return bw.element("div", { class: "sentence-layers" }, name(kind), bw.element("small", {}, note),
        bw.element("div", { class: "heat-row scroll" }, ...maps),
        bw.element("p", { class: "strip-title" }, `The ${view.d_model} numbers of ${quote(tokens[token])}`,
          view.parts.length > 1 ? "; forward half, then backward half" : "",
          "; positive ones in color, negative ones in that of the letters"),
        ...strips);
    }

    const mean = (values) => values.reduce((sum, x) => sum + x, 0) / values.length;

    function heatMap(kind, title, cosines, tokens, token, cell) {
      const T = tokens.length;
      const caption = bw.element("small", {}, "");
      const canvas = bw.element("canvas", { role: "img", width: T * cell, height: T * cell,
        "aria-label": `${title}: cosine of every token with every other, ${T} tokens` });
      const paint = canvas.getContext("2d");
      paint.fillStyle = bw.color(kind);
      for (let i = 0; i < T * T; i++) {
        paint.globalAlpha = Math.max(0, Math.min(1, cosines[i]));
        paint.fillRect((i % T) * cell, Math.floor(i / T) * cell, cell, cell);
      }
      paint.globalAlpha = 1;
      paint.strokeStyle = bw.color("ink");
      paint.strokeRect(0.5, token * cell + 0.5, T * cell - 1, cell - 1);
      canvas.addEventListener("pointermove", (event) => {
        const box = canvas.getBoundingClientRect();
        const j = Math.min(T - 1, Math.max(0, Math.floor((event.clientX - box.x) / cell)));
        const i = Math.min(T - 1, Math.max(0, Math.floor((event.clientY - box.y) / cell)));
        caption.textContent = ` ${tokens[i]} \u00b7 ${tokens[j]} ${cosines[i * T + j].toFixed(2)}`;
      });
      const rows = bw.element("div", { class: "heat-labels" }, ...(cell < bw.size("small") ? [] : tokens.map((text, i) =>
        bw.element("span", { style: `height:${cell}px;line-height:${cell}px`, class: i === token ? "strong" : null },
          text))));
      return bw.element("figure", { class: "heat" }, bw.element("figcaption", {}, title, caption),
        bw.element("div", { class: "heat-body" }, title === "layer 0" ? rows : "", canvas));
    }

    /** The lengths of a layer's vectors, a bar a token, under its heat map. */
    function lengths(kind, norms, tokens, cell) {
      const longest = Math.max(...norms, 1e-9);
      return bw.element("div", { class: "lengths", role: "img",
        "aria-label": `lengths: ${tokens.map((text, t) => `${text} ${bw.figure(norms[t])}`).join(", ")}` },
      ...Array.from(norms, (norm, t) => bw.element("i", { "data-encoder": kind, title: `${tokens[t]}: length ${bw.figure(norm)}`,
        style: `width: ${cell}px; height: ${(100 * norm) / longest}%` })));
    }

    /** Values from negative (ink) over the ground to positive (the encoder's color). */
    function strip(kind, values, hasHalves) {
      const largest = values.reduce((most, x) => Math.max(most, Math.abs(x)), 1e-9);
      const canvas = bw.element("canvas", { width: values.length, height: STRIP.height, role: "img",
        "aria-label": `${values.length} values up to ${largest.toFixed(2)} in size` });
      const paint = canvas.getContext("2d");
      values.forEach((x, i) => {
        paint.fillStyle = bw.color(x < 0 ? "ink" : kind);
        paint.globalAlpha = Math.abs(x) / largest;
        paint.fillRect(i, 0, 1, STRIP.height);
      });
      return bw.element("div", { class: hasHalves ? "vector halves" : "vector" }, canvas);
    }
  });

  /** Words with their cosines. */
  const nearList = (near) => bw.element("ol", { class: "near" }, ...near.map(([word, cosine]) =>
    bw.element("li", {}, bw.element("span", {}, word), bw.element("span", {}, cosine.toFixed(2)))));

  Object.assign(bw, { encoderNames: NAMES, encoderHead: name, nearList, wordSection: section });
})(window.bothways);
