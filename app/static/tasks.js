// Which layers does a task want: learned weights, accuracy by layer, and a way to try the weights.

(function (bw) {
  "use strict";

  const STRENGTHS = ["0", "0.001", "1"];
  const KINDS = { syntactic: "Syntax", semantic: "Meaning", other: "Entities and coreference" }; // as Claims has them
  const UNTRAINED = "untrained";
  const average = (values) => values.reduce((sum, x) => sum + x, 0) / values.length;

  bw.part("tasks", function (element, { trigger, props }) {
    const { table } = JSON.parse(props.value);
    if (!table) {
      element.replaceChildren(head("no table of probes is shipped with this copy"),
        bw.element("p", { class: "notice" }, "python -m elmo probe --tasks FOLDER makes one; below, a probe can be trained here."));
      return;
    }
    const chosen = { encoder: table.encoders[0].kind, strength: "0.001", scaled: "raw" };
    const controls = bw.element("div", { class: "controls" });
    const answer = bw.element("p", { class: "answer", role: "status" });
    const groups = bw.element("div", {});
    const numbers = bw.element("div", {});
    const status = bw.element("p", { class: "loaded", role: "status" });
    const host = bw.element("div", { class: "host" });
    const question = bw.element("select", { "aria-label": "what the triangle shows", onchange: () => {
      bw.emit("busy", true);
      trigger("question", { question: question.value });
    } });
    const range = bw.element("p", { class: "foot" });
    bw.on("query", tell);
    let isAsked = false; // again, when WordNet is there: more can be asked then
    const askAgain = () => {
      if (isAsked || !bw.state.pools || !bw.state.query || !bw.state.pools.wordnet.ready.includes(bw.state.bank.lead)) return;
      isAsked = true;
      trigger("question", { question: question.value });
    };
    bw.on("pools", askAgain);
    const marks = bw.element("aside", { class: "task-triangle" }, bw.element("b", {}, "All mixes of ELMo: who is near?"), question, host, range,
      bw.element("p", { class: "legend" }, ...[["syntactic", "syntax"], ["semantic", "meaning"], ["other", "others"]].flatMap(([kind, name]) =>
        [bw.svg("svg", { viewBox: "-6 -6 12 12", width: 12, height: 12, class: "triangle-mark" }, bw.taskMark(kind)), name])));
    const { seeds, settings, command, date } = table.about;
    element.replaceChildren(bw.element("section", { class: "tasks", "aria-label": "Tasks" },
      head(`linear probes · ${seeds.length} seeds · mean, 95 % interval`), controls, answer, status,
      bw.element("div", { class: "tasks-body" }, groups, marks), numbers,
      bw.element("p", { class: "foot" }, `${command} · ${date} · at most ${settings.n_train.toLocaleString("en")} training examples a task`)));
    bw.triangle(host);
    tell();
    askAgain();

    function tell() {
      const triangle = (bw.state.query || {}).triangle;
      if (!triangle) return;
      question.replaceChildren(...triangle.possible.map((name) => bw.element("option",
        { value: name, selected: name === triangle.asked }, bw.QUESTIONS[name])));
      const percent = (x) => `${(100 * x).toFixed(0)} %`;
      range.textContent = triangle.values ? `share among the nearest: ${percent(Math.min(...triangle.values))} (pale) to ${percent(Math.max(...triangle.values))} (strong)`
        : "nothing of the kind to find";
    }

    bw.whenKnown(() => { marks.hidden = bw.state.bank.encoders[bw.state.bank.lead].n_layers !== 3; });

    const representation = () => `mix${chosen.scaled === "equal" ? "_equal" : ""}_${chosen.strength}`;
    const mixOf = (task) => ((table.mixes[task] || {})[chosen.encoder] || {})[representation()];
    const nameOf = (kind) => table.encoders.find((encoder) => encoder.kind === kind).name;

    function draw() {
      controls.replaceChildren(
        choice("encoder", "encoder", table.encoders.map(({ kind, name }) => [kind, name])),
        choice("layers", "scaled", [["raw", "as they are"], ["equal", "of equal size"]]),
        choice("\u03bb", "strength", STRENGTHS.map((value) => [value, value])));
      answer.replaceChildren(...heights("Tasks of syntax", "syntactic"), ", ", ...heights("those of meaning", "semantic"), ". ",
        ...difference());
      groups.replaceChildren(...Object.entries(KINDS).map(([kind, name]) => bw.element("section", {},
        bw.element("h3", {}, name), bw.element("div", { class: "task-cards" },
          ...table.tasks.filter((task) => task.kind === kind && table.scores[task.key][chosen.encoder]).map(card)))));
      numbers.replaceChildren(allNumbers());
    }

    /** Where tasks of a kind listen on average, and which tasks these are. */
    function heights(name, kind) {
      const tasks = table.tasks.filter((task) => task.kind === kind && mixOf(task.key));
      const told = [...new Set(tasks.map(({ what }) => what.split(",")[0]))].join(", ");
      return [`${name} (${told}) listen on average at layer `,
        bw.element("b", {}, average(tasks.map(({ key }) => mixOf(key).gravity[0])).toFixed(2))];
    }

    /** Meaning minus syntax as Claims has it, where it was measured. */
    function difference() {
      const found = table.gravity.find((each) => each.encoder === chosen.encoder && each.representation === representation());
      if (!found) return ["The difference has an interval for ELMo and \u03bb = 0.001 only."];
      const { mean, low, high, unit, n, verdict } = found;
      return ["The difference: ", bw.element("b", {}, `${bw.signed(mean, 2)} ${unit}`),
        ` [${bw.signed(low, 2)}, ${bw.signed(high, 2)}], over ${n}: ${verdict}.`];
    }

    function choice(label, key, options) {
      return bw.element("div", { class: "control" }, bw.element("span", {}, label),
        bw.element("div", { class: "segmented", role: "group", "aria-label": label }, ...options.map(([value, text]) =>
          bw.element("button", { type: "button", "aria-pressed": String(chosen[key] === value), onclick: () => {
            chosen[key] = value;
            draw();
            [...controls.querySelectorAll("[aria-pressed=true]")].find((button) => button.textContent === text).focus();
          } }, text))));
    }

    /** One task: what its mix listens to, and what every layer can do. */
    function card(task) {
      const scores = table.scores[task.key][chosen.encoder];
      const untrained = chosen.encoder === table.encoders[0].kind ? table.scores[task.key][UNTRAINED] : null;
      const mix = mixOf(task.key);
      const layers = Object.keys(scores).filter((name) => name.startsWith("layer_"));
      const mean = chosen.scaled === "equal" ? "mean_equal" : "mean";
      const rows = [...layers, mean, representation()].map((name, i) => ({
        name: i < layers.length ? `layer ${i}` : i === layers.length ? "mean" : "mix",
        value: scores[name], other: untrained && untrained[name],
        title: `${scores[name][0].toFixed(1)} [${scores[name][1].toFixed(1)}, ${scores[name][2].toFixed(1)}], n = ${scores[name][3].toLocaleString("en")}`
          + (untrained && untrained[name] ? `; untrained ${untrained[name][0].toFixed(1)}` : ""),
      }));
      const majority = (table.scores[task.key].none || {}).word_majority;
      return bw.element("article", { "data-encoder": chosen.encoder, "data-task": task.key },
        bw.element("header", {}, bw.element("b", {}, task.what),
          chosen.encoder !== UNTRAINED && bw.state.bank && bw.element("button", { type: "button", class: "pill",
            title: "loads this mix into the sliders", onclick: () => load(task, mix) }, "use weights") || null),
        bw.shareBar(mix.s, mix.low.map((low, k) => [low, mix.high[k]])),
        bw.element("p", { class: "foot" }, `center of gravity ${mix.gravity[0].toFixed(2)} (seeds ${mix.gravity[1].toFixed(2)} to ${mix.gravity[2].toFixed(2)})`),
        bw.dotRows(rows),
        bw.element("p", { class: "foot" }, majority ? `most frequent label of the word ${majority[0].toFixed(1)}` : "",
          untrained ? " \u00b7 hollow: untrained" : ""));
    }

    function load(task, mix) {
      const encoder = bw.state.bank.encoders[chosen.encoder];
      if (!encoder || encoder.n_layers !== mix.raw.length) {
        status.textContent = "These weights are of another model than the one in use.";
        return;
      }
      bw.emit("taken");
      bw.setWeights(chosen.encoder, { w: bw.rawWeights(mix.raw) });
      status.replaceChildren(`${nameOf(chosen.encoder)}\u2019s sliders hold what \u201c${task.what}\u201d learned: ${bw.shareText(mix.raw)}. `,
        bw.element("button", { type: "button", class: "link", onclick: () => bw.openTab("neighbors") },
          `Neighbors of \u201c${bw.chosenWord()}\u201d under it`));
    }

    function allNumbers() {
      const named = (score) => (score ? `${score[0].toFixed(1)} [${score[1].toFixed(1)}, ${score[2].toFixed(1)}]` : "\u2013");
      const names = [...new Set(table.tasks.flatMap(({ key }) => Object.keys(table.scores[key][chosen.encoder] || {})))];
      const tableOf = (caption, scores) => bw.element("div", { class: "scroll" }, bw.valuesTable([caption],
        names.map((name) => [name.replace(/_/g, " "), chosen.encoder]),
        table.tasks.filter(({ key }) => scores[key] && scores[key][chosen.encoder]).map(({ key, what }) =>
          [[what], names.map((name) => named(scores[key][chosen.encoder][name]))])));
      return bw.element("details", { class: "numbers" }, bw.element("summary", {}, "all numbers, and what memory alone could not do"),
        tableOf("score: accuracy, for entities F1, in points", table.scores),
        tableOf("selectivity: accuracy less that on random labels of words (Hewitt and Liang 2019)", table.selectivity));
    }

    bw.whenKnown(draw);
  });

  const head = (method) => bw.element("header", { class: "view-head" },
    bw.element("h2", {}, "Which layers does a task want?"), bw.element("span", { class: "method" }, method));
})(window.bothways);
