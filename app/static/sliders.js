// The mixing panel: share bar, one slider and one typed value a weight, presets, the sweep.

(function (bw) {
  "use strict";

  const SWEEP_SECONDS = 4; // from one layer to the next

  bw.part("mixing", function (element) {
    const kept = {}; // the visitor's own mix, by encoder
    let kind = null; // whose mix the sliders drive
    let sweep = null; // the running animation, if one runs

    const panel = bw.element("section", { class: "mixing", "aria-label": "Mixing" });
    element.replaceChildren(panel);
    let rows = [];
    let segments = [];
    let presets = [];

    function build() {
      stopSweep();
      const { lead, encoders } = bw.state.bank;
      if (!encoders[kind]) kind = lead;
      const L = encoders[kind].n_layers;
      panel.dataset.encoder = kind;
      const choices = Object.entries(encoders).map(([key, { name }]) =>
        bw.element("button", {
          type: "button", class: "choice", "data-encoder": key, "aria-pressed": String(key === kind),
          onclick: () => drive(key),
        }, name));
      segments = Array.from({ length: L }, (_, k) =>
        shade(k, L));
      rows = Array.from({ length: L }, (_, k) => sliderRow(["w", bw.element("sub", {}, String(k))],
        `raw weight of layer ${k}`, -bw.LIMIT, bw.LIMIT, (value) => {
          const w = [...bw.weights[kind].w];
          w[k] = value;
          bw.setWeights(kind, { w });
        }));
      rows.push(sliderRow(["\u03b3"], "scale gamma", 0, bw.MAX_GAMMA,
        (gamma) => bw.setWeights(kind, { gamma })));
      const corner = (k) => Array.from({ length: L }, (_, i) => (i === k ? bw.LIMIT : -bw.LIMIT));
      presets = Array.from({ length: L }, (_, k) => preset(String(k), `layer ${k} alone`, corner(k)));
      presets.push(preset("mean", "all layers alike", new Array(L).fill(0)));
      for (const { preset: name, what, s } of encoders[kind].tasks) { // what a task learned
        if (name && s.length === L) presets.push(preset(name, `weights learned for: ${what}`, bw.rawWeights(s)));
      }
      if (kept[kind] && kept[kind].w.length === L) { // another biLM may have another depth
        presets.push(preset("mine", "the mix that you kept", kept[kind].w, kept[kind].gamma));
      }
      const keep = pill("keep", "keeps this mix as \u201cmine\u201d, until the page is closed", () => {
        const { w, gamma } = bw.weights[kind];
        kept[kind] = { w: [...w], gamma };
        build();
      });
      keep.classList.add("keep");
      const reset = pill("reset", "equal weights, gamma 1", () =>
        bw.setWeights(kind, { w: new Array(L).fill(0), gamma: 1 }));
      const play = pill("\u25b6 sweep", "from layer 0 to the top", toggleSweep);
      play.classList.add("sweep");
      panel.replaceChildren(
        bw.element("header", {}, bw.element("h2", {}, "Mixing"),
          bw.element("span", { class: "formula", title: "the mix: softmax-normalized weights, scaled" },
            "\u03b3 \u00b7 \u03a3 s", bw.element("sub", {}, "k"), " h", bw.element("sub", {}, "k"))),
        bw.element("div", { class: "choices", role: "group", "aria-label": "whose mix" }, ...choices),
        bw.element("div", { class: "shares", role: "img" }, ...segments),
        ...rows.map((row) => row.element),
        bw.element("div", { class: "pills" }, ...presets.map((p) => p.element), keep, reset, play),
      );
      show();
    }

    /** A layer's part of the share bar. */
    function shade(k, L) {
      const { strength, tone } = bw.shadeOf(k, L);
      return bw.element("span", { class: `segment ${tone}`, style: `--shade: ${strength}%` });
    }

    function sliderRow(symbol, label, min, max, set) {
      const range = bw.element("input", {
        type: "range", min, max, step: 0.05, "aria-label": label, title: label,
        oninput: () => use(range.valueAsNumber),
      });
      const typed = bw.element("input", {
        type: "text", inputmode: "decimal", class: "typed", "aria-label": `${label}, typed`,
        onchange: () => {
          const value = Number(typed.value.replace("\u2212", "-").replace(",", "."));
          if (typed.value.trim() && Number.isFinite(value)) use(value);
          else show();
        },
        onfocus: () => typed.select(),
        onkeydown: (event) => event.key === "Enter" && typed.blur(),
      });
      const use = (value) => {
        stopSweep();
        set(value);
      };
      const name = bw.element("span", { class: "symbol" }, ...symbol);
      return { range, typed, min, max, element: bw.element("div", { class: "slider" }, name, range, typed) };
    }

    function pill(text, title, action) {
      return bw.element("button", {
        type: "button", class: "pill", title, onclick: () => {
          if (action !== toggleSweep) stopSweep();
          action();
        },
      }, text);
    }

    function preset(text, title, w, gamma) {
      const button = pill(text, title, () => bw.setWeights(kind, { w, gamma }));
      return { element: button, w };
    }

    function drive(key) {
      kind = key;
      build();
      panel.querySelector(`.choice[data-encoder="${key}"]`).focus();
    }

    /** Controls follow the weights, whoever changed them. */
    function show() {
      const { w, gamma, s } = bw.weights[kind];
      [...w, gamma].forEach((value, i) => {
        const { range, typed, min, max } = rows[i];
        range.value = value;
        range.style.setProperty("--filled", `${(100 * (value - min)) / (max - min)}%`);
        if (document.activeElement !== typed || !typed.matches(":focus")) {
          typed.value = value.toFixed(2).replace("-", "\u2212");
        }
      });
      segments.forEach((segment, k) => {
        segment.style.flexGrow = s[k];
        segment.textContent = s[k] >= 0.095 ? s[k].toFixed(2).replace(/^0/, "") : "";
        segment.title = `layer ${k}: ${s[k].toFixed(3)}`;
      });
      segments[0].parentElement.setAttribute("aria-label",
        `shares: ${s.map((x, k) => `layer ${k} ${x.toFixed(2)}`).join(", ")}`);
      for (const { element: button, w: values } of presets) {
        const isOn = values.every((value, k) => Math.abs(value - w[k]) < 1e-9);
        button.setAttribute("aria-pressed", String(isOn));
      }
    }

    // ---- the sweep: from layer 0 alone over every edge to the top layer alone --------------------

    function toggleSweep() {
      if (sweep) return stopSweep();
      const start = performance.now();
      const seconds = SWEEP_SECONDS * (bw.weights[kind].w.length - 1);
      const step = () => {
        const share = Math.min((performance.now() - start) / 1000 / seconds, 1);
        for (const [each, { w }] of Object.entries(bw.weights)) { // all reach the top together
          const at = share * (w.length - 1);
          const low = Math.min(Math.floor(at), w.length - 2);
          const s = new Array(w.length).fill(0);
          s[low] = 1 - (at - low);
          s[low + 1] = at - low;
          bw.setWeights(each, { w: bw.rawWeights(s) });
        }
        sweep = share < 1 ? requestAnimationFrame(step) : null;
        label();
      };
      sweep = requestAnimationFrame(step);
      label();
    }

    function stopSweep() {
      if (sweep) cancelAnimationFrame(sweep);
      sweep = null;
      label();
    }

    function label() {
      const button = panel.querySelector(".sweep");
      if (button) button.textContent = sweep ? "\u25a0 stop" : "\u25b6 sweep";
    }

    bw.option("mixing", () => kind || bw.state.bank.lead, (key) => {
      if (!bw.state.bank.encoders[key]) return;
      kind = key;
      build();
    });
    bw.on("weights", (changed) => changed === kind && show());
    bw.on("taken", stopSweep);
    bw.whenKnown(build);
  });
})(window.bothways);
