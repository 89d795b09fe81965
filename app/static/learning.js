// How encoders learn: what each must predict and from what, what its loss teaches, and its curve.

(function (bw) {
  "use strict";

  const AXES = { tokens: ["tokens read", 1e6, "million tokens"], targets: ["predictions made", 1e6, "million predictions"],
    minutes: ["minutes", 1, "minutes"] };
  const SIDES = { forward: "from the left", backward: "from the right", joint: "from both sides" };
  const METRICS = { valid_mean: "perplexity", valid_log_probability: "log-probability of hidden words, nats" };

  bw.part("learning", function (element, { trigger, props }) {
    const known = JSON.parse(props.value);
    const { learning } = known;
    let draw = 0; // which drawing of the joint encoder's gaps
    let sent = 0;
    let gradientSent = 0;
    let isGradientAsked = false; // and its answer is still to come
    let held = null; // {key, tokens, encoders, gradients}
    let axis = "tokens";

    const notice = bw.element("p", { class: "notice", role: "status", hidden: true });
    const tasks = bw.element("div", { class: "task-list" });
    const again = bw.element("button", { type: "button", class: "pill again", onclick: () => {
      draw = (draw + 1) % known.n_draws;
      ask();
    } }, "hide other words");
    const gradients = bw.element("div", { class: "gradients" });
    const gradientAnswer = bw.element("p", { class: "answer", role: "status" });
    const costs = Object.entries(AXES).map(([key, [text]]) => bw.element("button", { type: "button", onclick: () => {
      axis = key;
      drawCurves();
    } }, text));
    const cost = bw.element("div", { class: "controls" },
      bw.element("div", { class: "segmented", role: "group", "aria-label": "cost" }, ...costs));
    const drawn = bw.element("div", {}); // the curves themselves
    const curves = bw.element("div", { class: "curves" }, bw.element("header", { class: "view-head" },
      bw.element("h2", {}, "Who learns faster, at equal cost?"),
      bw.element("span", { class: "method" }, "scores on held-out text while learning")), cost, drawn);
    const body = bw.element("div", {}, tasks, again, bw.element("section", {},
      bw.element("header", { class: "view-head" }, bw.element("h2", {}, "\u201cTrained separately\u201d: which part does a loss teach?"),
        bw.element("span", { class: "method" }, "length of the gradient of each loss on each part \u00b7 this sentence, full softmax")),
      gradients, gradientAnswer));
    element.replaceChildren(bw.element("section", { class: "learning", "aria-label": "How encoders learn" },
      bw.attentionViews(element, "learning"),
      bw.element("header", { class: "view-head" }, bw.element("h2", {}, "What must each encoder predict, and from which words?"),
        bw.element("span", { class: "method" }, "target framed \u00b7 what may be used filled \u00b7 hidden words struck \u00b7 click a word in the text")),
      notice, body, curves));

    const names = () => new Map(bw.encoderList().map(({ kind, name }) => [kind, name]));
    const nameOf = (kind) => names().get(kind) || kind;

    const ask = bw.asks(element, trigger, ["run", "chosen", "attentionView"], () => {
      const { sentence } = bw.state.chosen;
      const { length } = bw.state.run.sentences[sentence];
      if (length > known.max_tokens) {
        held = null;
        sent += 1;
        say(`Sentence ${sentence + 1} has ${length} tokens. This view takes ${known.max_tokens} at most.`);
        return null;
      }
      const key = keyOf();
      if (held && held.key === key) {
        say("");
        drawTasks();
        if (held.encoders && !isGradientAsked) nextGradient(); // the rest, if any
        return null;
      }
      sent += 1;
      held = { key, tokens: null, gradients: {} };
      return request("");
    });

    /** What the answers belong to. */
    function keyOf() {
      const { run, chosen, bank } = bw.state;
      return JSON.stringify([run.sentences[chosen.sentence], draw, Object.keys(bank.encoders), bank.elmo]);
    }

    const request = (kind) => ({ request: kind ? gradientSent : sent, sentence: bw.state.chosen.sentence, draw, kind });

    function say(text) {
      notice.hidden = !text;
      notice.textContent = text;
      body.hidden = Boolean(text);
    }

    bw.on("objectives", (view) => {
      if (!view) {
        held = null;
        say("This sentence could not be read.");
        return;
      }
      if (!held || view.request !== sent) return;
      Object.assign(held, { tokens: view.tokens, encoders: view.encoders, gradients: {} });
      say("");
      drawTasks();
      nextGradient();
    });

    /** One encoder after the other, while the sentence is the chosen one; also where the view is hidden. */
    function nextGradient() {
      const kind = Object.keys(held.encoders).find((each) => !held.gradients[each]);
      isGradientAsked = Boolean(kind) && held.key === keyOf();
      drawGradients();
      if (!isGradientAsked) return;
      gradientSent += 1;
      trigger("gradient", request(kind));
    }

    bw.on("gradient", (view) => {
      if (view && view.request !== gradientSent) return;
      isGradientAsked = false;
      if (!held || !held.encoders) return;
      if (!view) return drawGradients(); // it failed; the next change asks again
      held.gradients[view.kind] = view;
      nextGradient();
    });

    // ---- the objective ---------------------------------------------------------------------------

    function drawTasks() {
      if (!held || !held.encoders) return;
      const target = bw.state.chosen.token + 1;
      tasks.replaceChildren(...Object.entries(held.encoders).map(([kind, task]) => {
        const directions = [...new Set(task.directions)];
        const lines = directions.map((direction) => {
          const own = task.targets.findIndex((t, m) => t === target && task.directions[m] === direction);
          const m = own >= 0 ? own : task.targets.findIndex((_, i) => task.directions[i] === direction);
          return taskLine(task, direction, m, own < 0);
        });
        const n = task.targets.length;
        const count = kind === "attention" ? `${n} predictions of ${held.tokens.length} words:`
          + ` ${Math.round(100 * known.mask_share)} % are hidden, drawn anew each time`
          : `${n} predictions: every word and a boundary, once from each side`;
        return bw.element("section", { "data-encoder": kind }, bw.element("h3", {}, nameOf(kind), bw.element("small", {}, ` ${count}`)),
          bw.element("div", { class: "task" }, bw.element("div", { class: "task-lines" }, ...lines), grid(task, target)));
      }));
      again.hidden = !held.encoders.attention;
    }

    function taskLine(task, direction, m, isOther) {
      const words = task.read.map((token, t) => {
        const marks = t === task.targets[m] ? "target" : task.context[m][t] === "1" ? "context" : "";
        const text = t === task.targets[m] ? ["<S>", ...held.tokens, "</S>"][t] : token;
        return bw.element("span", { class: direction === "joint" && !marks ? "hidden-word" : marks }, text);
      });
      const note = isOther ? " (the chosen word is not hidden here: another one)" : "";
      return bw.element("p", { class: "task-line" }, bw.element("small", {}, SIDES[direction] + note),
        ...words.flatMap((word) => [word, " "]));
    }

    /** Every prediction a row: its context filled, its target in the color of the letters. */
    function grid(task, target) {
      const [rows, n] = [task.targets.length, task.read.length];
      const picture = bw.element("canvas", { width: n, height: rows, class: "task-grid", role: "img",
        "aria-label": `${rows} predictions as rows, ${n} tokens as columns` });
      picture.style.aspectRatio = `${n} / ${rows}`;
      const context = picture.getContext("2d");
      const color = bw.color(kindOf(task));
      task.targets.forEach((t, m) => {
        for (let i = 0; i < n; i++) {
          context.globalAlpha = t === target || i === t ? 1 : 0.45;
          context.fillStyle = i === t ? bw.color("ink") : task.context[m][i] === "1" ? color : bw.color("line");
          context.fillRect(i, m, 1, 1);
        }
      });
      return picture;
    }

    const kindOf = (task) => Object.keys(held.encoders).find((kind) => held.encoders[kind] === task);

    // ---- what a loss teaches ---------------------------------------------------------------------

    function drawGradients() {
      const kinds = Object.keys(held.encoders);
      gradients.replaceChildren(...kinds.map((kind) => {
        const found = held.gradients[kind];
        if (!found) return bw.element("p", { class: "notice" }, `${nameOf(kind)}: ${isGradientAsked ? "computing \u2026" : "not computed"}`);
        if (found.gap) return bw.element("p", { class: "notice" }, `${nameOf(kind)} ${found.gap}.`);
        return bw.element("div", { class: "scroll" }, bw.valuesTable([bw.element("b", {}, nameOf(kind))],
          found.groups.map((group) => [group, kind]), [
            ...found.losses.map((loss, j) => [[`${loss} loss, ${found.values[j].toFixed(2)} nats`],
              found.norm[j].map((x, g) => (found.zero[j][g] ? "exactly 0" : bw.figure(x)))]),
            [["numbers in it"], found.n_weights.map((n) => n.toLocaleString("en"))],
          ]));
      }));
      const { bilm } = held.gradients;
      if (!bilm || bilm.gap) {
        gradientAnswer.textContent = "";
        return;
      }
      const [j, g] = [bilm.losses.indexOf("backward"), bilm.groups.findIndex((name) => name.startsWith("forward"))];
      const shared = bilm.groups.map((name, i) => [name, i]).filter(([, i]) => !bilm.zero.some((row) => row[i]));
      gradientAnswer.replaceChildren("Half true: the backward loss leaves all ",
        bw.element("b", { "data-encoder": "bilm" }, bilm.n_weights[g].toLocaleString("en")), " numbers of the ",
        bilm.groups[g], bilm.zero[j][g] ? " exactly alone" : " changed, which must not be",
        `, and both losses teach the ${shared.map(([name]) => name).join(" and the ")} that they share.`);
    }

    // ---- curves ----------------------------------------------------------------------------------

    function drawCurves() {
      const { charts } = learning;
      const kinds = [...new Set(charts.flatMap(({ curves: found }) => Object.keys(found)))];
      cost.hidden = !kinds.length;
      Object.keys(AXES).forEach((key, i) => costs[i].setAttribute("aria-pressed", String(key === axis)));
      if (!kinds.length) {
        drawn.replaceChildren(bw.element("p", { class: "notice" }, "Random weights have no training curve."));
        return;
      }
      const furthest = Math.max(...charts.flatMap(({ curves: found }) => Object.values(found).flatMap((curve) => curve[axis])));
      drawn.replaceChildren(bw.element("p", {}, "Perplexity (every word, from one side, over 50,000 words) and the score on"
          + " hidden words (from both sides: jointly, or by the product of both directions) cannot be compared: they have axes"
          + " of their own."),
        bw.element("div", { class: "curve-columns" }, ...charts.map((one) => chart(one, furthest))),
        ...Object.entries(learning.history).map(([kind, text]) =>
          bw.element("p", { class: "notice" }, bw.element("b", { "data-encoder": kind }, nameOf(kind)), `: ${text}`)),
        ...Object.entries(learning.starts).map(([kind, tokens]) => bw.element("p", { class: "notice" },
          bw.element("b", { "data-encoder": kind }, nameOf(kind)), `: at ${(tokens / 1e6).toFixed(1)} million tokens training`
          + " went on from the weights so far with a new schedule of the learning rate.")),
        ...charts.filter(({ equal }) => equal).map(equalTable), gapTable());
    }

    const amount = (x, key) => `${(x / AXES[key][1]).toFixed(key === "minutes" ? 0 : 1)} ${AXES[key][2]}`;

    function equalTable({ metric, curves: found, equal }) {
      const kinds = Object.keys(found);
      const digits = metric === "valid_mean" ? 1 : 2;
      return bw.element("div", { class: "scroll" }, bw.valuesTable(
        [`${METRICS[metric]} at equal cost, the largest that all have reached; straight lines between evaluations;`
          + " minutes on processors that other work shared; a rate that falls at the end of a run improves its last values"],
        kinds.map((kind) => [nameOf(kind), kind]),
        Object.keys(AXES).map((key) => [[amount(equal[key].at, key)],
          kinds.map((kind) => (equal[key].scores[kind] === null ? "\u2013" : equal[key].scores[kind].toFixed(digits)))])));
    }

    /** Where all encoders do meet: the same hidden words, with the finished weights. */
    function gapTable() {
      const kinds = Object.keys(learning.gaps);
      if (!kinds.length) return "";
      const best = (kind) => Object.entries(learning.gaps[kind].values).reduce((a, b) => (b[1] > a[1] ? b : a));
      const [first] = [...kinds].sort((a, b) => best(b)[1] - best(a)[1]);
      return bw.element("div", {}, bw.element("div", { class: "scroll" }, bw.valuesTable(
        ["where all meet: mean log-probability of the same held-out hidden words, finished weights"],
        kinds.map((kind) => [nameOf(kind), kind]),
        [[["tokens read"], kinds.map((kind) => `${(learning.gaps[kind].tokens / 1e6).toFixed(1)} M`)],
          [["best guess"], kinds.map((kind) => [best(kind)[1].toFixed(2), best(kind)[0].replace("_", " ")])]])),
      bw.element("p", { class: "answer" }, `On the same hidden words ${nameOf(first)} guesses best so far, but no two encoders`
        + " have read equally much: what they learned says more of the budget than of the design."));
    }

    function chart({ metric, curves: found, equal }, furthest) {
      const kinds = Object.keys(found);
      const at = equal ? equal[axis].at : null;
      const isPerplexity = metric === "valid_mean";
      const size = bw.size("small");
      const width = Math.max(280, Math.min(520, bw.narrow() ? curves.clientWidth - 8 : (curves.clientWidth - 40) / 2));
      const [left, bottom, height] = [3.6 * size, 3.4 * size, 240];
      const scores = kinds.flatMap((kind) => found[kind].score);
      const scale = isPerplexity ? Math.log : (v) => v;
      const [low, high] = [Math.min(...scores), Math.max(...scores)].map(scale);
      const x = (v) => left + ((width - left - 12) * v) / furthest;
      const y = (v) => 12 + (height - bottom - 12) * (1 - (scale(v) - low) / (high - low || 1));
      const candidates = isPerplexity ? [60, 80, 100, 150, 200, 300, 400, 600, 1000] : [-9, -8, -7, -6, -5, -4, -3, -2, -1];
      const picture = bw.svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img",
        "aria-label": `${METRICS[metric]} of ${kinds.map(nameOf).join(" and ")} by ${AXES[axis][0]}` });
      for (const v of candidates.filter((c) => scale(c) >= low && scale(c) <= high)) {
        picture.append(bw.svg("line", { class: "rule", x1: left, x2: width - 12, y1: y(v), y2: y(v) }),
          bw.svg("text", { x: left - 6, y: y(v) + 4, "text-anchor": "end" }, String(v).replace("-", "\u2212")));
      }
      const shown = furthest / AXES[axis][1];
      const step = [1, 2, 5, 10, 20, 50, 100].find((s) => shown / s <= 6) || 100;
      for (let v = 0; v <= shown; v += step) {
        picture.append(bw.svg("text", { x: x(v * AXES[axis][1]), y: height - bottom + 1.4 * size, "text-anchor": "middle" }, String(v)));
      }
      picture.append(bw.svg("text", { x: width - 12, y: height - 4, "text-anchor": "end" }, AXES[axis][2]));
      if (at !== null) picture.append(bw.svg("line", { class: "equal", x1: x(at), x2: x(at), y1: 8, y2: height - bottom }));
      for (const kind of kinds) {
        const { score, [axis]: costs } = found[kind];
        picture.append(bw.svg("g", { class: "curve", "data-encoder": kind },
          bw.svg("path", { d: score.map((v, i) => `${i ? "L" : "M"}${x(costs[i])} ${y(v)}`).join("") }),
          ...score.map((v, i) => bw.encoderMark(kind, x(costs[i]), y(v), 3,
            `${nameOf(kind)}: ${v.toFixed(2)} at ${amount(costs[i], axis)}`))));
      }
      const better = isPerplexity ? "lower is better" : "higher is better";
      return bw.element("figure", {}, bw.element("figcaption", {}, ...kinds.flatMap((kind) =>
        [bw.curveSample(kind), bw.element("b", { "data-encoder": kind }, ` ${nameOf(kind)} `)]), `${METRICS[metric]}, ${better}`), picture);
    }

    function redraw() {
      if (!element.clientWidth) return;
      drawTasks();
      drawCurves();
    }
    bw.on("theme", redraw);
    bw.on("encoders", () => {
      ask();
      drawCurves();
    });
    bw.redraws(element, redraw);
  });
})(window.bothways);
