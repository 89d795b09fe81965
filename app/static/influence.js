// Whose vector moves when one word is replaced: a grid for every encoder, asked for in pieces.

(function (bw) {
  "use strict";

  const MEASURES = [
    ["gap", "gap token", "each word in turn becomes the gap token"],
    ["random", "random word", "each word in turn becomes random words"],
    ["word", "your word", "each word in turn becomes a word you type"],
    ["gradient", "gradient", "size of the derivative by the word's context-free vector"],
  ];
  const WIDEST = 26;
  const GAP = 24; // between grids

  bw.part("influence", function (element, { trigger, props }) {
    const known = { ...JSON.parse(props.value), encoders: bw.encoderList() };
    let measure = "gap";
    let word = "";
    let sent = 0; // number of the latest request
    let waiting = false; // for an answer: one question at a time
    let again = false; // whether something else was chosen meanwhile
    let held = null; // {request, key, tokens, sentence, measure, grids, unread, done, n_pieces, n_samples}
    let pair = null; // the chosen cell [j, t]
    let near = null; // the cell under the pointer
    let isNumbersOpen = false;

    // ---- the page's nodes ------------------------------------------------------------------------

    const measureButtons = MEASURES.map(([key, text, title]) => bw.element("button", {
      type: "button", title, onclick: () => {
        measure = key;
        markMeasure();
        if (key === "word" && !word) typed.focus();
        ask();
      },
    }, text));
    const typed = bw.element("input", { type: "text", class: "word", placeholder: "a word",
      "aria-label": "your word", maxlength: 60, onchange: () => useWord() });
    typed.addEventListener("keydown", (event) => event.key === "Enter" && useWord());
    const method = bw.element("span", { class: "method" });
    const notice = bw.element("p", { class: "notice", role: "status", hidden: true });
    const progress = bw.element("div", { class: "progress", role: "progressbar", "aria-valuemin": "0",
      "aria-valuemax": "100", "aria-label": "influence grids" }, bw.element("i", {}));
    const tip = bw.element("div", { class: "tip", hidden: true });
    const panels = bw.influencePanels(known.encoders, { point, pick, walk: ([rows, columns]) => {
      const n = held ? held.tokens.length : 0;
      const clamp = (x) => Math.max(0, Math.min(n - 1, x));
      if (n) pick([clamp(pair[0] + rows), clamp(pair[1] + columns)]);
    } });
    const grids = bw.element("div", { class: "grids" }, ...panels.map((panel) => panel.element), tip);
    const answer = bw.element("p", { class: "answer", role: "status" });
    const pairName = bw.element("summary", {});
    const byLayer = bw.element("div", { class: "scroll" });
    const pairDetails = bw.element("details", { class: "by-layer" }, pairName, byLayer);
    const numbers = bw.element("div", { class: "scroll" });
    const details = bw.element("details", { class: "numbers" },
      bw.element("summary", {}, "all numbers as tables"), numbers);
    details.addEventListener("toggle", () => {
      isNumbersOpen = details.open;
      drawNumbers();
    });
    const body = bw.element("div", {}, progress, grids, answer, pairDetails, details);
    element.replaceChildren(bw.element("section", { class: "influence", "aria-label": "Influence" },
      bw.element("header", { class: "view-head" },
        bw.element("h2", {}, "Replace one word. Whose vector moves?"), method),
      bw.element("div", { class: "controls" }, bw.depthControl(known.encoders),
        bw.element("div", { class: "control" }, bw.element("span", {}, "replaced by"),
          bw.element("div", { class: "segmented", role: "group", "aria-label": "replaced by" },
            ...measureButtons), typed)),
      notice, body));
    measureButtons[1].title += `: ${known.n_random} at each place, drawn from`
      + ` ${known.n_words.toLocaleString("en")} words of our examples`;
    markMeasure();

    function markMeasure() {
      measureButtons.forEach((button, i) =>
        button.setAttribute("aria-pressed", String(MEASURES[i][0] === measure)));
      typed.hidden = measure !== "word";
    }

    function useWord() {
      word = typed.value.trim();
      ask();
    }

    // ---- asking ----------------------------------------------------------------------------------

    function say(text) {
      notice.hidden = !text;
      notice.textContent = text || "";
      body.hidden = Boolean(text) && (!held || !held.tokens);
    }

    function request() {
      const { run, chosen } = bw.state;
      const tokens = run.sentences[chosen.sentence];
      const key = JSON.stringify([tokens, measure, measure === "word" ? word : null]);
      if (held && held.key === key) {
        again = false;
        say("");
        choose();
        return waiting || isWhole() ? null : next(held.done);
      }
      if (tokens.length > known.max_tokens) {
        held = null;
        sent += 1; // answers still to come are for another sentence
        say(`Sentence ${chosen.sentence + 1} has ${tokens.length} tokens. This view takes`
          + ` ${known.max_tokens} at most: each word is replaced in turn, so the work grows with the`
          + " square of the length.");
        return null;
      }
      if (measure === "word" && (!word || /\s/.test(word))) {
        say(word ? "One word replaces one word: type it without spaces." : "Type a word to put in place of each.");
        return null;
      }
      if (waiting) {
        again = true;
        return null;
      }
      const isNewText = !held || String(held.tokens) !== String(tokens);
      sent += 1;
      held = { request: sent, key, tokens, sentence: chosen.sentence, measure, word, grids: {}, unread: {},
        done: 0, n_pieces: 0 };
      if (isNewText) pair = null;
      say("");
      choose(isNewText);
      showProgress();
      return next(0);
    }

    function next(piece) {
      waiting = true;
      const { request, sentence, measure, word } = held;
      return { request, sentence, measure, word, piece };
    }

    const ask = bw.asks(element, trigger, ["run", "chosen"], request);

    const isWhole = () => held.n_pieces > 0 && held.done >= held.n_pieces;

    bw.on("influence", (answer) => {
      waiting = false;
      if (!answer) held = null; // refused; asked anew by the next change
      else if (held && answer.request === held.request) take(answer);
      if (again) { // the rest of the old question is not asked for any more
        again = false;
        ask();
      } else if (held && !isWhole()) trigger("ask", next(held.done));
      showProgress();
    });

    function take(answer) {
      Object.assign(held, { n_pieces: answer.n_pieces || 1, n_samples: answer.n_samples, unread: answer.unread });
      if (answer.kind) held.grids[answer.kind] = bw.addInfluencePiece(held.grids[answer.kind] || null, answer);
      held.done += 1;
      draw();
    }

    function showProgress() {
      const share = held && held.n_pieces ? held.done / held.n_pieces : 0;
      progress.classList.toggle("on", Boolean(held) && !isWhole());
      progress.setAttribute("aria-valuenow", String(Math.round(100 * share)));
      progress.firstChild.style.width = `${100 * share}%`;
      grids.setAttribute("aria-busy", String(progress.classList.contains("on")));
    }

    // ---- the chosen pair -------------------------------------------------------------------------

    /** The chosen token is the replaced one; the vector is its right neighbor's at first. */
    function choose(isNewText) {
      const { sentence, token } = bw.state.chosen;
      const n = held.tokens.length;
      if (isNewText || !pair || (sentence === held.sentence && pair[0] !== token)) {
        const t = pair && !isNewText && pair[1] !== token ? pair[1] : token + 1 < n ? token + 1 : Math.max(0, token - 1);
        pair = [token, t];
      }
      draw();
    }

    function pick(place) {
      pair = place;
      pairDetails.open = true;
      draw();
    }

    function point(panel, place, event) {
      const moved = String(place) !== String(near);
      near = place;
      tip.hidden = !place || !panel.data;
      if (!tip.hidden) {
        const box = grids.getBoundingClientRect();
        tip.replaceChildren(...tipText(panel, place));
        const x = event.clientX - box.x;
        tip.style.left = `${Math.max(0, Math.min(box.width - tip.offsetWidth, x + 14))}px`;
        tip.style.top = `${event.clientY - box.y + 18}px`;
      }
      if (moved) drawCells();
    }

    function tipText(panel, [j, t]) {
      return [bw.element("b", {}, held.tokens[j]), ` ${j + 1} \u2192 `, bw.element("b", {}, held.tokens[t]),
        ` ${t + 1}: `, textAt(panel, panel.data, j, t)];
    }

    const textAt = (panel, data, j, t) => panel.valueText(data, j * held.tokens.length + t);

    // ---- drawing ---------------------------------------------------------------------------------

    let frame = null;
    function draw() {
      if (frame !== null) return;
      frame = requestAnimationFrame(() => {
        frame = null;
        if (!held || !element.clientWidth) return;
        compute();
        drawCells();
        panels.forEach((panel) => panel.tellZeros(held));
        drawMethod();
        drawAnswer();
        drawByLayer();
        drawNumbers();
      });
    }

    function compute() {
      panels.forEach((panel) => panel.compute(held));
      // One scale for all: lengths are relative. Derivatives are not, and keep a scale an encoder.
      const groups = new Map();
      for (const panel of panels.filter((each) => each.data)) {
        const group = held.measure === "gradient" ? panel.encoder.kind : "all";
        const top = panel.data.value.reduce((a, b) => Math.max(a, b), 0);
        groups.set(group, Math.max(groups.get(group) || 0, top));
        panel.group = group;
      }
      panels.filter((each) => each.data).forEach((panel) => { panel.data.top = groups.get(panel.group); });
    }

    /** How many grids stand side by side, and how large a cell is. */
    function shapeOf(labels) {
      const n = held.tokens.length;
      const room = grids.clientWidth - 4;
      const left = labels.width + 12;
      const cellOf = (columns) => Math.floor((room - left - (columns - 1) * GAP) / columns / n);
      if (bw.narrow()) return { columns: panels.length, cell: Math.max(11, Math.min(WIDEST, cellOf(1))), left, isRow: true };
      const columns = [panels.length, 3].find((count) => count <= panels.length && cellOf(count) >= bw.size("small") - 1) || 2;
      return { columns, cell: Math.max(4, Math.min(WIDEST, cellOf(columns))), left, isRow: false };
    }

    function drawCells() {
      if (!held) return;
      const labels = bw.measureLabels(held.tokens, 7 * bw.size("small"));
      const { columns, cell, left, isRow } = shapeOf(labels);
      const n = held.tokens.length;
      grids.style.gap = `16px ${GAP}px`;
      panels.forEach((panel, i) => {
        const labelled = isRow || i % columns === 0;
        panel.element.style.width = `${(labelled ? left : 0) + n * cell}px`;
        panel.element.style.setProperty("--indent", labelled ? `${left}px` : "0px");
        panel.blank.style.height = `${n * cell}px`;
        if (!panel.data) return;
        panel.colors = bw.ramp(panel.encoder.kind);
        panel.canvas.draw({ n, cell, left: labelled ? left : 0, labels },
          { ...panel.data, colors: panel.colors, stairs: panel.encoder.halves && panel.part === "whole" },
          { pair, near });
        panel.canvas.node.setAttribute("aria-label", `${panel.name}: ${held.tokens[pair[0]]} replaced, `
          + `${held.tokens[pair[1]]} read: ${textAt(panel, panel.data, ...pair)}. Arrow keys move the pair.`);
      });
    }

    function drawMethod() {
      const how = {
        gap: "length of the change / length of the vector",
        random: `root mean square \u00b1 error of ${known.n_random} random words, seed ${known.seed}`,
        word: "length of the change / length of the vector",
        gradient: `norm of the derivative, ${known.n_directions} random directions, seed`
          + ` ${known.seed}, \u00b1 error; own scales`,
      }[held.measure];
      const tops = panels.filter((panel) => panel.data).map((panel) => panel.data.top);
      const scale = held.measure !== "gradient" && tops.length
        ? ` \u00b7 full color ${bw.figure(Math.max(...tops))}, shade by square root` : "";
      method.replaceChildren("row: replaced \u00b7 column: read \u00b7 ", bw.element("i", { class: "zero" }),
        ` exactly 0 \u00b7 ${how}${scale}`);
    }

    function drawAnswer() {
      const n = held.tokens.length;
      const [j] = pair;
      const moved = (panel) => {
        let count = 0;
        for (let t = 0; t < n; t++) count += Number(t !== j && !bw.isZeroCell(panel.data.states[j * n + t]));
        return count;
      };
      const figures = panels.filter((panel) => panel.data).map((panel) => [
        bw.element("b", { "data-encoder": panel.encoder.kind }, String(moved(panel))),
        ` ${panel.vectors}`]);
      answer.replaceChildren("Replace ", bw.element("em", {}, held.tokens[j]),
        `. Of the ${n - 1} other words' vectors move: `,
        ...figures.flatMap((figure, i) => (i ? [" \u00b7 ", ...figure] : figure)));
    }

    /** The chosen pair in every layer and the mix. */
    function drawByLayer() {
      const n = held.tokens.length;
      const [j, t] = pair;
      const rows = [...bw.allLayers(known.encoders), "mix"].map((depth) => [
        [depth === "mix" ? "mix" : `layer ${depth}`],
        panels.map((panel) => textAt(panel, panel.dataAt(held, depth), j, t))]);
      pairName.replaceChildren("Replace ", bw.element("b", {}, held.tokens[j]), ` (word ${j + 1} of ${n}), read `,
        bw.element("b", {}, held.tokens[t]), ` (word ${t + 1}), in every layer`);
      byLayer.replaceChildren(bw.valuesTable(["Click a cell for another pair, or walk with the arrow keys"],
        panels.map((panel) => [panel.name, panel.encoder.kind]), rows));
    }

    /** Every grid as a table, built only while it is open. */
    function drawNumbers() {
      if (!isNumbersOpen || !held || progress.classList.contains("on")) return;
      numbers.replaceChildren(...panels.filter((panel) => panel.data).map((panel) => bw.valuesTable(
        [`${panel.name}, ${panel.layer.textContent}: row replaced, column read`],
        held.tokens.map((token) => [token, null]),
        held.tokens.map((token, j) => [[token], held.tokens.map((_, t) => textAt(panel, panel.data, j, t))]))));
    }

    bw.on("depth", () => held && draw());
    bw.on("weights", () => held && draw());
    bw.redraws(element, () => body.isConnected && held && draw()); // not those of a part drawn anew since
  });
})(window.bothways);
