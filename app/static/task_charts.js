// Drawings of probes: what a mix listens to, scores with intervals, and curves over training.

(function (bw) {
  "use strict";

  /** The shares of a mix as one bar; extremes: [low, high] of each over seeds, told on hover. */
  function shareBar(s, extremes) {
    return bw.element("div", { class: "share-bar", role: "img",
      "aria-label": s.map((x, k) => `layer ${k} ${x.toFixed(2)}`).join(", ") },
    ...s.map((x, k) => bw.element("span", {
      class: bw.shadeOf(k, s.length).tone, style: `flex-grow: ${x}; --shade: ${bw.shadeOf(k, s.length).strength}%`,
      title: `layer ${k}: ${x.toFixed(3)}${extremes ? ` (seeds ${extremes[k].map((e) => e.toFixed(3)).join(" to ")})` : ""}`,
    }, x >= 0.12 ? x.toFixed(2).replace(/^0/, "") : "")));
  }

  /** Rows of one scale: [{name, value: [mean, low, high], other: the same or absent, title}]. The scale
   *  reaches from the lowest to the highest end of an interval. digits: of the numbers. */
  function dotRows(rows, digits = 1) {
    const ends = rows.flatMap(({ value, other }) => [...value.slice(0, 3), ...(other ? other.slice(0, 3) : [])]);
    const low = Math.min(...ends);
    const room = Math.max(...ends) - low || 1;
    const at = (x) => `${(100 * (x - low)) / room}%`;
    const mark = (value, kind) => [
      bw.element("i", { class: `range ${kind}`, style: `left: ${at(value[1])}; width: ${(100 * (value[2] - value[1])) / room}%` }),
      bw.element("i", { class: `dot ${kind}`, style: `left: ${at(value[0])}` })];
    return bw.element("div", { class: "dot-rows" }, ...rows.flatMap(({ name, value, other, title }) => [
      bw.element("span", {}, name),
      bw.element("div", { class: "track", title }, ...(other ? mark(other, "other") : []), ...mark(value, "own")),
      bw.element("b", {}, value[0].toFixed(digits))]));
  }

  /** Curves over steps in a drawing as wide as its node. lines: [{name, values: [[step, y]], class}];
   *  areas: stacked shares [{name, values}] instead; steps: the last one; range: [low, high] of y. */
  function curves(node, { lines = [], areas = [], steps, range, format, rule }) {
    const size = bw.size("small");
    const width = Math.max(node.clientWidth, 180);
    const [left, right, top, bottom] = [4, 3.4 * size, size, 1.6 * size];
    const height = 130 + top + bottom;
    const [low, high] = range;
    const x = (step) => left + ((width - left - right) * step) / steps;
    const y = (value) => top + (height - top - bottom) * (1 - (value - low) / (high - low || 1));
    const path = (points) => `M${points.map(([step, value]) => `${x(step).toFixed(1)} ${y(value).toFixed(1)}`).join("L")}`;
    const drawing = bw.svg("svg", { class: "curves", width, height, viewBox: `0 0 ${width} ${height}` });
    for (const value of [low, high]) {
      drawing.append(bw.svg("line", { class: "grid", x1: left, x2: width - right, y1: y(value), y2: y(value) }),
        bw.svg("text", { x: width - right + 4, y: y(value) + size / 3 }, format(value)));
    }
    let below = areas.length ? areas[0].values.map(([step]) => [step, 0]) : [];
    areas.forEach(({ name, values }, k) => {
      const above = values.map(([step, value], i) => [step, value + below[i][1]]);
      const area = bw.svg("path", { class: "area", d: `${path(above)}L${path([...below].reverse()).slice(1)}Z` }, bw.svg("title", {}, name));
      area.style.setProperty("--shade", `${bw.shadeOf(k, areas.length).strength}%`);
      drawing.append(area);
      const [, middle] = above[above.length - 1];
      const share = values[values.length - 1][1];
      if (share > 0.1) drawing.append(bw.svg("text", { x: width - right + 4, y: y(middle - share / 2) + size / 3 }, `s${"\u2080\u2081\u2082\u2083\u2084\u2085\u2086\u2087\u2088\u2089"[k] || k} ${share.toFixed(2).replace(/^0/, "")}`));
      below = above;
    });
    if (rule) {
      drawing.append(bw.svg("line", { class: "rule", x1: left, x2: width - right, y1: y(rule.value), y2: y(rule.value) }),
        bw.svg("text", { class: "second", x: left + 4, y: y(rule.value) + size }, rule.name));
    }
    for (const { name, values, kind } of lines) {
      const [step, value] = values[values.length - 1];
      drawing.append(bw.svg("path", { class: `line ${kind}`, d: path(values) }),
        bw.svg("circle", { class: kind, cx: x(step), cy: y(value), r: 3 }, bw.svg("title", {}, `${name} ${format(value)}`)));
    }
    drawing.append(bw.svg("text", { class: "second", x: left, y: height - 3 }, "step 0"),
      bw.svg("text", { class: "second", x: width - right, y: height - 3, "text-anchor": "end" }, String(steps)));
    node.replaceChildren(drawing);
  }

  /** A number with its sign. */
  const signed = (x, digits) => `${x > 0 ? "+" : x < 0 ? "\u2212" : ""}${Math.abs(x).toFixed(digits)}`;

  Object.assign(bw, { shareBar, dotRows, curves, signed });
})(window.bothways);
