// What the views of layers share: the choice of a layer or the mix, numbers in three digits, tables.

(function (bw) {
  "use strict";

  bw.state.depth = "top"; // the layer shown: a number, "top" (each encoder's own) or "mix"

  /** Buttons for the layers of all encoders and their mix; the same choice wherever they stand. */
  function depthControl(encoders) {
    const depths = [...allLayers(encoders), "top", "mix"];
    const titles = { top: "each encoder's last layer", mix: "the mix of the sliders, for each encoder" };
    const buttons = depths.map((depth) => bw.element("button", {
      type: "button", title: titles[depth] || `layer ${depth}`, onclick: () => {
        bw.state.depth = depth;
        bw.emit("depth");
      },
    }, String(depth)));
    const mark = () => buttons.forEach((button, i) =>
      button.setAttribute("aria-pressed", String(depths[i] === bw.state.depth)));
    bw.on("depth", mark);
    mark();
    bw.option("depth", () => bw.state.depth, (depth) => {
      if (!depths.includes(depth)) return;
      bw.state.depth = depth;
      bw.emit("depth");
    });
    return bw.element("div", { class: "control" }, bw.element("span", {}, "layer"),
      bw.element("div", { class: "segmented", role: "group", "aria-label": "layer" }, ...buttons));
  }

  /** 0, 1, ... up to the last layer of the deepest encoder. */
  const allLayers = (encoders) => [...Array(Math.max(...encoders.map(({ n_layers }) => n_layers))).keys()];

  const depthName = (n_layers) => {
    const { depth } = bw.state;
    return depth === "mix" ? "mix" : `layer ${depth === "top" ? n_layers - 1 : depth}`;
  };

  /** The shares of a depth under one encoder; null for a layer that the encoder has not. */
  function sharesAt(depth, kind, n_layers) {
    const alone = (k) => Array.from({ length: n_layers }, (_, i) => Number(i === k));
    if (depth === "top") return alone(n_layers - 1);
    if (depth !== "mix") return depth < n_layers ? alone(depth) : null;
    const mix = bw.weights[kind];
    return mix && mix.s.length === n_layers ? mix.s : new Array(n_layers).fill(1 / n_layers);
  }

  const SUPERSCRIPTS = "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079";

  /** A number in two or three digits. */
  function figure(x) {
    if (x === 0) return "0";
    if (x >= 100) return x.toFixed(0);
    if (x >= 0.001) return x.toPrecision(x >= 0.01 ? 3 : 2);
    const [digits, power] = x.toExponential(1).split("e-");
    return `${digits}\u00b710\u207b${[...power].map((c) => SUPERSCRIPTS[c]).join("")}`;
  }

  const ZEROS = new Set(["exactly 0", "0", "unchanged"]);

  /** A table of numbers. caption: children; columns: [text, encoder or null]; rows: [children of the
   *  head, cells], a cell its text or [text, note]. What is exactly 0 stands on grey. */
  function valuesTable(caption, columns, rows) {
    const cell = (value) => {
      const [text, note] = [value].flat();
      return bw.element("td", { class: ZEROS.has(text) ? "zero" : null }, text, note && bw.element("small", {}, note));
    };
    return bw.element("table", { class: "values" }, bw.element("caption", {}, ...caption),
      bw.element("thead", {}, bw.element("tr", {}, bw.element("td", {}), ...columns.map(([text, encoder]) =>
        bw.element("th", { scope: "col", "data-encoder": encoder }, text)))),
      bw.element("tbody", {}, ...rows.map(([head, cells]) => bw.element("tr", {},
        bw.element("th", { scope: "row" }, ...head), ...cells.map(cell)))));
  }

  Object.assign(bw, { depthControl, allLayers, depthName, sharesAt, figure, valuesTable });
})(window.bothways);
