// Hide a word: who can guess it, from the left, from the right, or from both sides?

(function (bw) {
  "use strict";

  const TITLES = { forward: "From the left", backward: "From the right", product: "Product", joint: "Both at once" };
  const MARKS = { forward: "M-5,-6L7,0L-5,6Z", backward: "M5,-6L-7,0L5,6Z", product: "M-5,0A5,5 0 1 0 5,0A5,5 0 1 0 -5,0Z", joint: "M0,-7L7,0L0,7L-7,0Z" };
  const FACTORS = ["left", "right", "word alone"];
  const percent = (x) => `${(100 * x).toFixed(1)}`;
  const probability = (p) => (p >= 0.001 ? p.toFixed(3) : p.toExponential(0));
  const nameOf = (kind) => bw.encoderNames[kind] || kind;
  const label = (kind, predictor) => `${nameOf(kind)} ${predictor === "joint" ? "" : predictor}`.trim();

  bw.part("gaps", function (element, { trigger, props }) {
    const known = JSON.parse(props.value);
    const exponents = JSON.parse(JSON.stringify(known.exponents));
    let gap = null; // number of the shipped gap, null for the visitor's sentence
    let position = null; // of the hidden word
    let request = 0;

    const picker = bw.element("select", { "aria-label": "sentence", onchange: () => {
      gap = picker.value === "" ? null : Number(picker.value);
      position = gap === null ? null : known.gaps[gap].position;
      ask();
    } }, bw.element("option", { value: "" }, "your sentence"));
    for (const kind of ["interacting", "additive"]) {
      const group = bw.element("optgroup", { label: kind === "additive"
        ? "additive: a product can do it" : "interacting: a product cannot" });
      known.gaps.forEach((one, i) => one.label === kind && group.append(bw.element("option", { value: i },
        one.tokens.map((token, t) => (t === one.position ? "____" : token)).join(" "))));
      picker.append(group);
    }
    const sentence = bw.element("p", { class: "gap-sentence" });
    const answer = bw.element("p", { class: "answer", role: "status" });
    const columns = bw.element("div", { class: "gap-columns" });
    const factors = bw.element("details", { class: "numbers" }, bw.element("summary", {}, "exponents of the product"),
      ...Object.entries(exponents).map(([kind, values]) => bw.element("p", { class: "gap-factors" }, nameOf(kind),
        ...FACTORS.map((name, i) => {
          const shown = bw.element("output", {}, values[i].toFixed(2));
          return bw.element("label", {}, name, bw.element("input", { type: "range", min: 0, max: 2, step: 0.01,
            value: values[i], oninput: (event) => {
              values[i] = Number(event.target.value);
              shown.textContent = values[i].toFixed(2);
            }, onchange: () => ask() }), shown);
        }))));
    element.replaceChildren(bw.element("section", { class: "gaps", "aria-label": "Gaps" },
      bw.element("header", { class: "view-head" }, bw.element("h2", {}, "Hide a word. Who can guess it?"),
        bw.element("span", { class: "method" }, `click a word to hide it · sentences of ${known.max_tokens} tokens at most`)),
      picker, sentence, answer, columns, factors, table(known.table)));

    bw.on("chosen", () => { gap = null; position = null; picker.value = ""; });
    bw.on("run", () => { gap = null; position = null; picker.value = ""; });
    const ask = bw.asks(element, trigger, ["run", "chosen"], () => {
      const { chosen } = bw.state;
      request += 1;
      return { request, gap, exponents, sentence: chosen.sentence,
        position: position === null ? chosen.token : position };
    });

    bw.on("gaps", (view) => {
      if (!view) {
        sentence.replaceChildren();
        columns.replaceChildren();
        answer.textContent = "No guesses for this sentence.";
        return;
      }
      if (view.request !== request) return;
      const hidden = view.tokens[view.position];
      drawSentence(view);
      const best = view.guesses.filter((g) => g.rank !== null).sort((a, b) => a.rank - b.rank || b.probability - a.probability)[0];
      answer.textContent = !view.guesses.length ? "No encoder here can guess words."
        : best ? `${label(best.kind, best.predictor)} comes closest: “${hidden}” is its guess number ${best.rank.toLocaleString("en")}, probability ${probability(best.probability)}.`
          : `“${hidden}” is outside the vocabulary: no one can name it.`;
      const longest = Math.max(...view.guesses.flatMap((g) => g.probabilities)); // one scale for all
      columns.replaceChildren(...view.guesses.map((guess) => column(guess, hidden, longest)),
        ...view.unread.map((one) => bw.element("p", { class: "notice", "data-encoder": one.kind }, `${nameOf(one.kind)} ${one.why}.`)));
    });

    /** The sentence as buttons, made anew only for another one. */
    function drawSentence({ tokens, position: hidden }) {
      const buttons = [...sentence.children];
      const isSame = buttons.length === tokens.length && buttons.every((button, t) => button.textContent === tokens[t]);
      if (!isSame) sentence.replaceChildren(...tokens.map(tokenButton));
      [...sentence.children].forEach((button, t) => button.setAttribute("aria-pressed", String(t === hidden)));
    }

    const tokenButton = (token, t) => bw.element("button", { type: "button", title: `hide ${token}`, onclick: () => {
      position = t;
      ask();
    } }, token);

    function column(guess, hidden, longest) {
      return bw.element("div", { class: "gap-column", "data-encoder": guess.kind, "data-predictor": guess.predictor },
        bw.element("h3", {}, TITLES[guess.predictor], bw.element("small", {}, label(guess.kind, guess.predictor))),
        bw.element("ol", {}, ...guess.words.map((word, i) => bw.element("li", { class: word === hidden ? "gold" : null },
          bw.element("span", {}, word),
          bw.element("i", { style: `width:${((100 * guess.probabilities[i]) / longest).toFixed(2)}%` }),
          bw.element("b", {}, probability(guess.probabilities[i]))))),
        bw.element("p", { class: "foot" }, guess.rank === null ? `${hidden}: outside the vocabulary`
          : `${hidden}: rank ${guess.rank.toLocaleString("en")} · p ${probability(guess.probability)}`),
        bw.element("p", { class: "foot" }, `entropy ${guess.entropy.toFixed(1)} bits · unknown words ${probability(guess.unknown)}`));
    }
  });

  // ---- the shipped table -------------------------------------------------------------------------

  function table(data) {
    const rows = data.rows.filter((row) => row.kind === "all" && row.score === "balanced accuracy");
    const host = bw.element("div", { class: "gap-chart" });
    const names = rows.map((row) => [`evidence ${row.evidence}`, `${row.data.replace("_", " ")}, n = ${row.n.toLocaleString("en")}`]);
    /** In the pixels of its place, so that letters keep their size; on phones names stand above their rows. */
    const drawChart = () => {
      const width = Math.min(900, host.clientWidth);
      if (!width) return;
      const [size, step] = [bw.size("text"), Math.max(18, bw.size("text") + 2)];
      const room = 1.15 * bw.measureLabels(names.flat(), 1000).width + 16;
      const isNarrow = width < 2.2 * room;
      const [left, above] = isNarrow ? [16, 2 * step] : [room, 0];
      const block = above + (data.predictors.length + 1) * step;
      const height = rows.length * block + 2 * size;
      const svg = bw.svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "balanced accuracy by evidence" });
      const x = (value) => left + ((width - left - 26) * (value - 0.45)) / 0.55;
      for (let tick = 50; tick <= 100; tick += 10) {
        svg.append(bw.svg("line", { x1: x(tick / 100), x2: x(tick / 100), y1: 0, y2: height - 1.8 * size, class: "grid" }),
          bw.svg("text", { x: x(tick / 100), y: height - 6, "text-anchor": "middle" }, `${tick}%`));
      }
      rows.forEach((row, r) => {
        const top = r * block + step;
        svg.append(bw.svg("text", { x: 0, y: isNarrow ? top : top + step }, names[r][0]),
          bw.svg("text", { x: 0, y: isNarrow ? top + step : top + 2 * step, class: "second" }, names[r][1]));
        data.predictors.forEach(([kind, predictor], i) => {
          const y = top + above + i * step;
          const group = bw.svg("g", { "data-encoder": kind });
          group.append(bw.svg("title", {}, `${label(kind, predictor)} ${percent(row.values[i])} % [${percent(row.low[i])}, ${percent(row.high[i])}]`),
            bw.svg("line", { x1: x(row.low[i]), x2: x(row.high[i]), y1: y, y2: y, class: "range" }),
            bw.svg("path", { d: MARKS[predictor], transform: `translate(${x(row.values[i])},${y})` }));
          svg.append(group);
        });
      });
      host.replaceChildren(svg);
    };
    bw.redraws(host, drawChart);
    const legend = bw.element("p", { class: "gap-legend" }, ...data.predictors.map(([kind, predictor]) => {
      const mark = bw.svg("svg", { viewBox: "-8 -8 16 16", width: 14, height: 14 });
      mark.append(bw.svg("path", { d: MARKS[predictor] }));
      return bw.element("span", { "data-encoder": kind }, mark, label(kind, predictor));
    }));
    const against = bw.element("select", { "aria-label": "compared with", onchange: () => fill() },
      bw.element("option", { value: "" }, "values"),
      ...data.predictors.map(([kind, predictor], i) => bw.element("option", { value: i }, `minus ${label(kind, predictor)}, paired`)));
    const body = bw.element("tbody", {});
    const fill = () => body.replaceChildren(...data.rows.map((row) => {
      const j = against.value;
      const log = row.score === "log-probability";
      const show = (v) => (log ? v.toFixed(2) : percent(v));
      const [v, low, high] = j === "" ? [row.values, row.low, row.high]
        : [row.difference, row.difference_low, row.difference_high].map((m) => m.map((line) => line[j]));
      return bw.element("tr", {}, bw.element("th", {}, `${row.evidence} · ${row.data} · ${row.kind}`),
        bw.element("td", {}, log ? `${row.score}, nats` : `${row.score}, %`), bw.element("td", {}, row.n.toLocaleString("en")),
        ...v.map((value, i) => bw.element("td", {}, `${show(value)} [${show(low[i])}, ${show(high[i])}]`)));
    }));
    fill();
    return bw.element("div", { class: "gap-table" },
      bw.element("header", { class: "view-head" }, bw.element("h2", {}, "Where the evidence lies decides who can know"),
        bw.element("span", { class: "method" }, "balanced accuracy of the right word against its rival · 95 % intervals")),
      legend, host, bw.element("details", { class: "numbers" }, bw.element("summary", {}, "all rows, and paired differences"),
        against, bw.element("div", { class: "scroll" }, bw.element("table", { class: "values" }, bw.element("thead", {},
          bw.element("tr", {}, ...["evidence", "score", "n", ...data.predictors.map(([k, p]) => label(k, p))]
            .map((text) => bw.element("th", {}, text)))), body))));
  }
})(window.bothways);
