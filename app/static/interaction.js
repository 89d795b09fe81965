// Change the left, the right, both: where does a vector feel both changes at once?

(function (bw) {
  "use strict";

  const list = (names) => (names.length < 2 ? names.join("")
    : `${names.slice(0, -1).join(", ")} and ${names[names.length - 1]}`);

  bw.part("interaction", function (element, { trigger, props }) {
    const known = { ...JSON.parse(props.value), encoders: bw.encoderList() };
    if (bw.state.bank.elmo) delete known.averages.bilm; // those are of the shipped model
    const nameOf = (kind) => known.encoders.find((encoder) => encoder.kind === kind).name;
    let example = null; // of ours, or null for the visitor's sentence
    let edits = null; // {left, right}: {start, stop, text}; null for the server's proposal
    let shown = null; // the latest answer
    let own = ""; // the visitor's sentence that the edits belong to
    let sent = 0;
    let waiting = false; // for an answer: one question at a time
    let again = false; // whether something else was chosen meanwhile
    let at = null; // the token whose numbers are told
    let isRevealed = false;

    // ---- the page's nodes ------------------------------------------------------------------------

    const select = bw.element("select", { "aria-label": "sentence", onchange: () => {
      example = select.value === "own" ? null : Number(select.value);
      edits = null;
      ask();
    } });
    const words = bw.element("div", { class: "edited", role: "group", "aria-label": "the sentence with its edits" });
    const notice = bw.element("p", { class: "notice", role: "status", hidden: true });
    const guesses = known.encoders.map((encoder) => bw.element("button", { type: "button", class: "pill",
      "aria-pressed": "false", "data-encoder": encoder.kind, onclick: (event) => {
        const button = event.currentTarget;
        button.setAttribute("aria-pressed", String(button.getAttribute("aria-pressed") === "false"));
      } }, encoder.name));
    const reveal = bw.element("button", { type: "button", class: "primary", onclick: () => {
      isRevealed = true;
      draw();
    } }, "Show");
    const predict = bw.element("div", { class: "predict", role: "group", "aria-label": "predict first" },
      bw.element("span", {}, "Predict first. At the words between the edits, whose vectors change by exactly"
        + " the sum of the two single changes, to the last bit?"), ...guesses, reveal);
    const verdict = bw.element("p", { class: "verdict", role: "status" });
    const chart = bw.element("div", { class: "chart", tabindex: "0", role: "application", "data-arrows": true });
    const readout = bw.element("p", { class: "readout", role: "status" });
    const cards = bw.element("div", { class: "answers" });
    const sizes = bw.element("div", { class: "scroll" });
    const numbers = bw.element("div", { class: "scroll" });
    const results = bw.element("div", { hidden: true }, verdict, chart, readout, cards, footnote(), sizes, proof(),
      bw.element("details", { class: "numbers" }, bw.element("summary", {}, "all numbers as a table"), numbers));
    const formula = bw.element("span", { class: "method" }, "I", bw.element("sub", {}, "t"),
      " = [h(L\u2032,R\u2032) \u2212 h(L\u2032,R)] \u2212 [h(L,R\u2032) \u2212 h(L,R)], its length over that of h",
      bw.element("sub", {}, "t"));
    element.replaceChildren(bw.element("section", { class: "interaction", "aria-label": "Interaction" },
      bw.element("header", { class: "view-head" },
        bw.element("h2", {}, "Change the left, the right, both. Does the middle feel both at once?"), formula),
      bw.element("div", { class: "controls" },
        bw.element("label", { class: "control" }, bw.element("span", {}, "sentence"), select),
        bw.depthControl(known.encoders),
        bw.element("span", { class: "hint" }, "click a word to move the nearer edit there; Shift+click takes"
          + " several words; type what replaces them")),
      words, notice, predict, results));

    function proof() {
      return bw.element("details", { class: "proof" },
        bw.element("summary", {}, "Why exactly 0? The proof in one paragraph"),
        bw.element("p", {}, "Take a word strictly between the edits. Its forward half is computed from the words"
          + " up to it: they hold the left edit and not the right one. So h(L\u2032,R\u2032) and h(L\u2032,R)"
          + " have the same forward half, and so have h(L,R\u2032) and h(L,R): both brackets are 0 there. Its"
          + " backward half is computed from it and the words after it and does not change with the left edit: the two"
          + " brackets are one and the same vector, and their difference is 0. Concatenation sets the halves side"
          + " by side and adds nothing, and a mix of layers adds zeros to zeros. Equal inputs in equally shaped"
          + " runs give equal outputs, and x \u2212 x is 0 for every x: the zero is exact in floating point too."
          + " In joint attention each layer combines both sides in one vector, and the next layer works on the"
          + " combination: nothing makes I zero. At layer 0 a vector sees its own word only: no edit reaches"
          + " the words between, they are unchanged."));
    }

    function footnote() {
      return bw.element("p", { class: "footnote" }, "The zero belongs to the vector, not to what can be made of it:"
        + " any reader of the vector that is not linear can still combine the two sides, a classifier with a hidden"
        + " layer as well as the cosine. On and outside the edits one half has seen both of them, and above layer 0"
        + " I is not 0.");
    }

    // ---- asking ----------------------------------------------------------------------------------

    function request() {
      const { run, chosen } = bw.state;
      const tokens = run.sentences[chosen.sentence];
      const text = JSON.stringify(tokens);
      if (example === null && text !== own) edits = null;
      own = text;
      fillSelect();
      if (example === null && (tokens.length > known.max_tokens || tokens.length < 3)) {
        return refuse(tokens.length < 3
          ? "Two edits with a word between them need three words or more. Choose one of our sentences, or a longer one."
          : `This sentence has ${tokens.length} tokens; this view takes ${known.max_tokens} at most.`);
      }
      refuse("");
      again = waiting;
      if (waiting) return null;
      waiting = true;
      sent += 1;
      const weights = Object.fromEntries(Object.entries(bw.weights).map(([kind, mix]) => [kind, mix.w]));
      return { request: sent, sentence: chosen.sentence, example, ...(edits || {}), weights };
    }

    function refuse(text) {
      notice.hidden = !text;
      notice.textContent = text;
      for (const node of [words, predict, results]) node.classList.toggle("away", Boolean(text));
      return null;
    }

    function fillSelect() {
      const short = (tokens) => (tokens.join(" ").length > 60 ? `${tokens.join(" ").slice(0, 58)}\u2026` : tokens.join(" "));
      const { run, chosen } = bw.state;
      select.replaceChildren(
        bw.element("option", { value: "own" }, `your sentence ${chosen.sentence + 1}: ${short(run.sentences[chosen.sentence])}`),
        ...known.examples.map(({ tokens, left, right }, i) => bw.element("option", { value: i },
          `${tokens[left.start]} \u2192 ${left.text}, ${tokens[right.start]} \u2192 ${right.text}: ${short(tokens)}`)));
      select.value = example === null ? "own" : String(example);
    }

    const ask = bw.asks(element, trigger, ["run", "chosen", "settled"], request);

    bw.on("interaction", (answer) => {
      waiting = false;
      if (again) {
        again = false;
        ask();
        return;
      }
      if (!answer) { // refused: back to what is shown
        if (shown) edits = { left: shown.left, right: shown.right };
        if (shown) drawWords();
        return;
      }
      if (answer.request !== sent) return;
      const isNewText = !shown || String(shown.tokens) !== String(answer.tokens);
      shown = answer;
      edits = { left: answer.left, right: answer.right };
      results.classList.remove("stale");
      if (isNewText || at === null) at = Math.floor((answer.left.stop + answer.right.start) / 2);
      drawWords();
      draw();
    });

    // ---- the sentence and its edits ----------------------------------------------------------------

    function drawWords() {
      const { tokens, left, right } = shown;
      const focused = words.contains(document.activeElement) && document.activeElement.dataset.side;
      const nodes = [];
      for (let i = 0; i < tokens.length; i++) {
        const side = i === left.start ? "left" : i === right.start ? "right" : null;
        if (!side) {
          nodes.push(wordButton(i));
          continue;
        }
        const edit = shown[side];
        nodes.push(bw.element("s", {}, tokens.slice(edit.start, edit.stop).join(" ")), replacementInput(side, edit));
        i = edit.stop - 1;
      }
      words.replaceChildren(...nodes.flatMap((node) => [node, " "]));
      if (focused) words.querySelector(`[data-side=${focused}]`).focus();
    }

    function wordButton(i) {
      return bw.element("button", { type: "button", class: "token", "data-token": i,
        title: "edit this word instead", onclick: (event) => moveEdit(i, event.shiftKey) }, shown.tokens[i]);
    }

    function replacementInput(side, edit) {
      const input = bw.element("input", { type: "text", class: "replacement", value: edit.text, maxlength: 200,
        "aria-label": `${side} edit: in place of ${shown.tokens.slice(edit.start, edit.stop).join(" ")}`,
        onchange: () => {
          edits = { left: shown.left, right: shown.right, [side]: { ...edit, text: input.value } };
          ask();
        } });
      input.dataset.side = side;
      input.style.width = `${Math.max(3, [...edit.text].length)}ch`;
      input.addEventListener("input", () => { input.style.width = `${Math.max(3, [...input.value].length)}ch`; });
      return input;
    }

    /** The nearer edit goes to word i, or grows to it; its words are those that stood there, so that
     *  the visitor types over them. */
    function moveEdit(i, grow) {
      const { tokens, left, right } = shown;
      const isLeft = i < right.start && Math.abs(i - left.start) <= Math.abs(right.start - i);
      const side = isLeft ? "left" : "right";
      const old = shown[side];
      const start = grow ? Math.min(i, old.start) : i;
      const stop = grow ? Math.max(i + 1, old.stop) : i + 1;
      const other = isLeft ? right : left;
      if (isLeft ? stop >= other.start : start <= other.stop) {
        refuseMove();
        return;
      }
      refuse("");
      shown = { ...shown, [side]: { start, stop, text: tokens.slice(start, stop).join(" ") } };
      results.classList.add("stale");
      drawWords();
      const input = words.querySelector(`[data-side=${side}]`);
      input.focus();
      input.select();
    }

    function refuseMove() {
      notice.hidden = false;
      notice.textContent = "At least one word must stay between the two edits.";
    }

    // ---- results ---------------------------------------------------------------------------------

    const kinds = () => known.encoders.map((encoder) => encoder.kind).filter((kind) => shown.encoders[kind]);

    /** The row of an encoder's numbers that the chosen layer means: its layers, then the mix. */
    function rowOf(kind) {
      const n_layers = shown.encoders[kind].size.length - 1;
      const { depth } = bw.state;
      if (depth === "mix") return n_layers;
      if (depth === "top") return n_layers - 1;
      return depth < n_layers ? depth : null;
    }

    const isAllZero = (kind, k) => shown.encoders[kind].n_zero[k] === shown.encoders[kind].n_between;
    const isUnchanged = (kind, k) => shown.encoders[kind].n_unchanged[k] === shown.encoders[kind].n_between;

    function draw() {
      if (!shown || !element.clientWidth) return;
      predict.hidden = isRevealed;
      results.hidden = !isRevealed;
      if (!isRevealed) return;
      drawVerdict();
      drawChart();
      drawReadout();
      cards.replaceChildren(...known.encoders.map(card));
      drawSizes();
      drawNumbers();
    }

    function drawVerdict() {
      const expected = guesses.filter((button) => button.getAttribute("aria-pressed") === "true")
        .map((button) => button.dataset.encoder);
      const zero = kinds().filter((kind) => shown.encoders[kind].size.every((_, k) => isAllZero(kind, k)));
      const said = expected.length ? `You said ${list(expected.map(nameOf))}. ` : "";
      const isRight = String(expected) === String(zero);
      const others = kinds().filter((kind) => !zero.includes(kind)).map(nameOf);
      const truth = zero.length ? `Exactly the sum, in every layer and their mix: ${list(zero.map(nameOf))}.` : "";
      const rest = others.length ? ` Not ${list(others)}: there the middle feels both at once.` : "";
      verdict.replaceChildren(said, expected.length ? bw.element("b", {}, isRight ? "Right. " : "Not so. ") : "",
        truth + rest);
    }

    function drawChart() {
      const lines = kinds().filter((kind) => rowOf(kind) !== null).map((kind) => ({ kind,
        name: `${nameOf(kind)}, ${bw.depthName(shown.encoders[kind].size.length - 1)}`,
        sizes: shown.encoders[kind].size[rowOf(kind)] }));
      bw.interactionChart(chart, { ...shown, lines, at, walkTo });
      chart.setAttribute("aria-label", `Interaction by word. ${cardsText()} Arrow keys walk along the words.`);
    }

    const cardsText = () => kinds().filter((kind) => rowOf(kind) !== null)
      .map((kind) => `${nameOf(kind)}: ${isAllZero(kind, rowOf(kind)) ? "exactly 0 between the edits"
        : `${bw.figure(shown.encoders[kind].mean[rowOf(kind)])} on average between the edits`}.`).join(" ");

    function walkTo(t) {
      if (t === at || t < 0 || t >= shown.tokens.length) return;
      at = t;
      drawChart();
      drawReadout();
    }

    chart.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!step) return;
      event.preventDefault();
      walkTo(at + step);
    });

    const sizeText = (kind, k, t) => {
      const { size, zero, unchanged } = shown.encoders[kind];
      return unchanged[k][t] ? "unchanged" : zero[k][t] ? "exactly 0" : bw.figure(size[k][t]);
    };

    function drawReadout() {
      const parts = kinds().filter((kind) => rowOf(kind) !== null).flatMap((kind) => [" \u00b7 ", `${nameOf(kind)} `,
        bw.element("b", { "data-encoder": kind }, sizeText(kind, rowOf(kind), at))]);
      readout.replaceChildren("At ", bw.element("em", {}, shown.tokens[at]), ` (word ${at + 1})`, ...parts);
    }

    /** One encoder's answer: the figure, and what it is a figure of. */
    function card({ kind, name, n_layers }) {
      const view = shown.encoders[kind];
      const k = view ? rowOf(kind) : null;
      const box = (big, ...text) => bw.element("section", { class: "card", "data-encoder": kind },
        bw.element("h3", {}, name, " ", bw.element("small", {}, k === null ? "" : bw.depthName(n_layers))),
        bw.element("strong", {}, big), bw.element("p", {}, ...text));
      if (!view) return box("\u2013", shown.unread[kind] || "");
      if (k === null) return box("\u2013", `has layers 0 to ${n_layers - 1}`);
      const n = view.n_between;
      const count = `${view.n_zero[k]} of ${n} word${n === 1 ? "" : "s"} between the edits`;
      if (isUnchanged(kind, k)) return box("unchanged", `No edit reaches the ${n} words between in this layer: there is nothing to compare.`);
      if (isAllZero(kind, k)) {
        return box("0", `exactly, at ${count}: all ${(n * view.width).toLocaleString("en")} numbers are 0.0. `
          + "Each half has seen one edit only.");
      }
      return box(bw.figure(view.mean[k]), `of the vector's length, on average over the ${n} words between the edits`
        + ` (${Math.round(100 * view.share[k])}\u2009% of what the two edits do alone). Exactly 0 at ${count}.`);
    }

    /** Relative size by layer: this sentence, and our examples. */
    function drawSizes() {
      const depths = [...bw.allLayers(known.encoders), "mix"];
      const here = ({ kind, n_layers }, k) => {
        const view = shown.encoders[kind];
        const row = k === "mix" ? n_layers : k;
        if (!view || (k !== "mix" && k >= n_layers)) return "\u2013";
        return isUnchanged(kind, row) ? "unchanged" : isAllZero(kind, row) ? "0" : bw.figure(view.mean[row]);
      };
      const average = ({ kind, n_layers }, k) => {
        const mean = known.averages[kind];
        if (k === "mix" || k >= n_layers) return "\u2013";
        if (mean.n_unchanged[k] === mean.n_vectors) return "unchanged";
        if (mean.n_zero[k] === mean.n_vectors) return ["0", `${mean.n_zero[k]} of ${mean.n_vectors}`];
        return [bw.figure(mean.mean[k]), `${bw.figure(mean.low[k])}\u2013${bw.figure(mean.high[k])}`];
      };
      const row = (encoder, label, make) => [
        [bw.element("b", { "data-encoder": encoder.kind }, encoder.name), ` ${label}`],
        depths.map((k) => make(encoder, k))];
      const n_examples = Object.values(known.averages).map((mean) => mean.n_examples)[0];
      sizes.replaceChildren(bw.valuesTable(
        ["Mean size of I between the edits over the vector's length, by layer",
          n_examples ? `; over our ${n_examples} examples with 95\u2009% intervals` : ""],
        depths.map((k) => [k === "mix" ? "mix" : `layer ${k}`, null]),
        known.encoders.flatMap((encoder) => [row(encoder, "this sentence", here),
          ...(known.averages[encoder.kind] ? [row(encoder, "our examples", average)] : [])])));
    }

    function drawNumbers() {
      const columns = kinds().flatMap((kind) => shown.encoders[kind].size.map((_, k) => [kind, k]));
      const name = (kind, k) => `${nameOf(kind)} ${k === shown.encoders[kind].size.length - 1 ? "mix" : k}`;
      numbers.replaceChildren(bw.valuesTable(
        ["Size of I over the vector's length, at every word, by layer and for the mix"],
        columns.map(([kind, k]) => [name(kind, k), kind]),
        shown.tokens.map((token, t) => [[token], columns.map(([kind, k]) => sizeText(kind, k, t))])));
    }

    bw.on("depth", draw);
    bw.redraws(element, () => words.isConnected && draw()); // not those of a part drawn anew since
  });
})(window.bothways);
