// A probe that learns in the page: s_k, loss and held-out accuracy over its steps.

(function (bw) {
  "use strict";

  const SOURCES = [["pos", "part of speech"], ["supersense", "supersense"], ["own", "my own labels"]];
  const percent = (x) => `${(100 * x).toFixed(0)} %`;

  bw.part("probe", function (element, { trigger, props }) {
    const known = JSON.parse(props.value);
    const chosen = { source: "pos", encoder: bw.state.bank.lead };
    let trained = { ...chosen }; // what the run shown was started with
    const encoders = Object.entries(bw.state.bank.encoders);
    let request = 0;
    let running = false;
    let reports = [];
    let end = null;

    const seed = bw.element("input", { type: "number", min: 0, max: known.seeds - 1, value: 1, "aria-label": "seed" });
    const text = bw.element("textarea", { rows: 6, spellcheck: "false", "aria-label": "labeled text",
      placeholder: "token<TAB>label, one a line, an empty line between sentences; or CoNLL-U" });
    const file = bw.element("input", { type: "file", accept: ".txt,.tsv,.conllu,.conll", "aria-label": "file with labels",
      onchange: async () => {
        const [given] = file.files;
        if (given && given.size > 1e6) say(`${given.name} has ${(given.size / 1e6).toFixed(1)} MB; 1 MB is read at most.`);
        else if (given) text.value = await given.text();
      } });
    const column = bw.element("select", { "aria-label": "column of labels" },
      ...known.columns.map((name) => bw.element("option", { value: name }, name)));
    const own = bw.element("div", { class: "own-labels", hidden: true }, text, bw.element("p", {}, file,
      bw.element("label", {}, "CoNLL-U column ", column)));
    const start = bw.element("button", { type: "button", class: "primary", onclick: () => (running ? stop() : train()) }, "Train");
    const controls = bw.element("div", { class: "controls" }, choice("source", SOURCES),
      choice("encoder", encoders.map(([kind, { name }]) => [kind, name])),
      bw.element("label", { class: "control" }, bw.element("span", {}, "seed"), seed), start);
    const answer = bw.element("p", { class: "answer", role: "status" });
    const charts = ["what the mix listens to: s\u2096", "loss on training tokens, nats", "accuracy: held out, and dashed on training tokens"].map((title) => {
      const host = bw.element("div", {});
      return { host, node: bw.element("figure", {}, bw.element("figcaption", {}, title), host) };
    });
    const figures = bw.element("div", { class: "probe-charts", hidden: true }, ...charts.map(({ node }) => node));
    const layers = bw.element("div", { class: "probe-layers" });
    element.replaceChildren(bw.element("section", { class: "live-probe", "aria-label": "Train a probe" },
      bw.element("header", { class: "view-head" }, bw.element("h2", {}, "Train one here. Does your task agree?"),
        bw.element("span", { class: "method" }, `${known.steps} steps · up to ${known.tokens.toLocaleString("en")} tokens of WordNet\u2019s examples · words held out were never trained on`)),
      controls, own, answer, figures, layers));

    function choice(key, options) {
      const buttons = options.map(([value, name]) => bw.element("button", { type: "button", "aria-pressed": String(chosen[key] === value),
        onclick: () => {
          chosen[key] = value;
          buttons.forEach((button, i) => button.setAttribute("aria-pressed", String(options[i][0] === value)));
          own.hidden = chosen.source !== "own";
        } }, name));
      return bw.element("div", { class: "control" }, bw.element("div", { class: "segmented", role: "group", "aria-label": key }, ...buttons));
    }

    const say = (...words) => answer.replaceChildren(...words);

    function setRunning(value) {
      running = value;
      start.textContent = running ? "Stop" : "Train";
    }

    function train() {
      request += 1;
      trained = { ...chosen };
      reports = [];
      end = null;
      layers.replaceChildren();
      setRunning(true);
      say("Encoding \u2026");
      bw.emit("busy", true);
      trigger("train", { request, ...trained, seed: Number(seed.value),
        ...(trained.source === "own" ? { text: text.value, column: column.value } : {}) });
    }

    function stop() {
      request += 1; // what still arrives is of the stopped run
      setRunning(false);
      trigger("stop", {});
      say(reports.length ? `Stopped after ${reports[reports.length - 1].step} steps.` : "Stopped.");
    }

    bw.on("probe", (view) => {
      if (!view) { // the handler failed and said why
        if (running && !reports.length) say("Not trained.");
        setRunning(false);
        return;
      }
      if (view.request !== request) return;
      if (view.report) {
        reports.push(view.report);
        say(`Step ${view.report.step} of ${known.steps}: held-out accuracy ${percent(view.report.held_out)}, s = ${bw.shareText(view.report.s)}.`);
      }
      if (view.end) {
        end = view.end;
        setRunning(false);
        finish();
      }
      draw();
    });

    function draw() {
      figures.hidden = !reports.length;
      figures.dataset.encoder = trained.encoder;
      if (!reports.length) return;
      const over = (value) => reports.map((report) => [report.step, value(report)]);
      const losses = reports.map(({ loss }) => loss);
      const steps = known.steps;
      bw.curves(charts[0].host, { steps, range: [0, 1], format: (v) => String(v),
        areas: reports[0].s.map((_, k) => ({ name: `layer ${k}`, values: over(({ s }) => s[k]) })) });
      bw.curves(charts[1].host, { steps, range: [0, Math.max(...losses)], format: (v) => v.toFixed(1),
        lines: [{ name: "loss", kind: "own", values: over(({ loss }) => loss) }] });
      bw.curves(charts[2].host, { steps, range: [0, 1], format: percent,
        rule: end && { value: end.majority, name: "most frequent label" },
        lines: [{ name: "training tokens", kind: "dashed", values: over((r) => r.train) },
          { name: "held out", kind: "own", values: over((r) => r.held_out) }] });
    }

    function finish() {
      const last = reports[reports.length - 1];
      const names = Object.keys(end.layers);
      const best = names.reduce((a, b) => (end.layers[b] > end.layers[a] ? b : a));
      say(`The mix listens at layer ${end.gravity.toFixed(2)} on average; held-out accuracy ${percent(last.held_out)}, most frequent label ${percent(end.majority)}. `,
        bw.element("button", { type: "button", class: "link", onclick: () => {
          bw.emit("taken");
          bw.setWeights(trained.encoder, { w: bw.rawWeights(last.s) });
          bw.openTab("neighbors");
        } }, "Neighbors under this mix"));
      layers.dataset.encoder = trained.encoder;
      layers.replaceChildren(bw.element("b", {}, "A probe on one layer alone, same split"),
        bw.dotRows(names.map((name) => ({ name: name === "mean_equal" ? "mean" : name.replace("_", " "),
          value: [100 * end.layers[name], 100 * end.layers[name], 100 * end.layers[name]] }))),
        bw.element("p", { class: "foot" }, `best: ${best === "mean_equal" ? "the plain mean" : best.replace("_", " ")} \u00b7 ${end.n_labels} labels \u00b7 trained on ${end.n_train.toLocaleString("en")} tokens, held out ${end.n_held_out.toLocaleString("en")}`));
    }

    bw.redraws(element, draw);
  });
})(window.bothways);
