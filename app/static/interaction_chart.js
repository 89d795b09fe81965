// The size of the interaction along the sentence: a line an encoder, the words below.

(function (bw) {
  "use strict";

  const HEIGHT = 190; // of the plot, without the words below it
  const LEFT = 52; // room for the scale
  const MARKS = { bilm: "circle", attention_concat: "square", attention: "diamond" };

  /** A round number near a third of the largest value, for the lines of the scale. */
  function stepOf(top) {
    const rough = top / 3;
    const unit = 10 ** Math.floor(Math.log10(rough));
    return [1, 2, 5, 10].map((x) => x * unit).find((x) => x >= rough);
  }

  /** An encoder's mark on its curve; title: what it tells when it is pointed at. */
  bw.encoderMark = function (kind, x, y, r, title) {
    const more = title ? [bw.svg("title", {}, title)] : [];
    if (MARKS[kind] === "square") return bw.svg("rect", { x: x - r, y: y - r, width: 2 * r, height: 2 * r }, ...more);
    if (MARKS[kind] === "diamond") {
      const d = r * 1.35;
      return bw.svg("path", { d: `M${x} ${y - d}L${x + d} ${y}L${x} ${y + d}L${x - d} ${y}Z` }, ...more);
    }
    return bw.svg("circle", { cx: x, cy: y, r }, ...more);
  };

  /** A piece of an encoder's curve, for legends. */
  bw.curveSample = (kind) => bw.svg("svg", { width: 26, height: 12, class: "curve", "data-encoder": kind },
    bw.svg("path", { d: "M0 6L26 6" }), bw.encoderMark(kind, 13, 6, 4));

  const text = (content, attributes) => bw.svg("text", attributes, content);

  /** tokens, left, right: the sentence and its edits; lines: [{kind, name, sizes}]; at: the word that is
   *  told about; walkTo(t): another one is pointed at. */
  bw.interactionChart = function (node, { tokens, left, right, lines, at, walkTo }) {
    const n = tokens.length;
    const size = bw.size("small");
    const top = size + 4; // room for the note above the plot
    const width = Math.max(node.clientWidth, LEFT + 26 * n);
    const pitch = (width - LEFT - 16) / n;
    const x = (t) => LEFT + (t + 0.5) * pitch;
    const largest = Math.max(...lines.flatMap(({ sizes }) => sizes), 0);
    const step = largest > 0 ? stepOf(largest) : 1;
    const ceiling = step * Math.max(1, Math.ceil(largest / step - 1e-9));
    const y = (value) => top + (HEIGHT - top) * (1 - value / ceiling);
    const words = tokens.map((token, t) => [token, replacementOf(t, left, right)]);
    const labels = bw.measureLabels(words.map(([token, other]) =>
      (other !== null && `\u2192 ${other}`.length > token.length ? `\u2192 ${other}` : token)), 130);
    const isSlanted = labels.width > pitch - 6;
    const height = HEIGHT + (isSlanted ? Math.ceil(labels.width * 0.87) + 26 : 2.6 * size + 14);
    const svg = bw.svg("svg", { width, height, viewBox: `0 0 ${width} ${height}` });

    const from = LEFT + left.stop * pitch;
    const span = (right.start - left.stop) * pitch;
    svg.append(bw.svg("rect", { class: "between", x: from, y: top, width: span, height: HEIGHT - top }),
      text("between the edits", { class: "note", x: from + span / 2, y: size - 2, "text-anchor": "middle" }));
    for (let value = 0; value <= ceiling * 1.001; value += step) {
      if (!largest && value) break; // nothing to scale
      svg.append(bw.svg("line", { class: "rule", x1: LEFT, x2: width - 16, y1: y(value), y2: y(value) }),
        text(String(Number(value.toPrecision(3))), { class: "note", x: LEFT - 6, y: y(value),
          "text-anchor": "end", "dominant-baseline": "central" }));
    }
    svg.append(bw.svg("line", { class: "cursor", x1: x(at), x2: x(at), y1: top, y2: HEIGHT }));
    for (const { kind, sizes } of lines) {
      const path = sizes.map((value, t) => `${t ? "L" : "M"}${x(t)} ${y(value)}`).join("");
      svg.append(bw.svg("g", { class: "curve", "data-encoder": kind }, bw.svg("path", { d: path }),
        ...sizes.map((value, t) => bw.encoderMark(kind, x(t), y(value), t === at ? 5.5 : 4))));
    }
    bw.measureLabels(tokens, 130).texts.forEach((label, t) => {
      const other = words[t][1];
      const node = text(label, { class: other === null ? "label" : "label edit", ...(isSlanted
        ? { transform: `translate(${x(t) + 4} ${HEIGHT + 10}) rotate(-60)`, "text-anchor": "end" }
        : { x: x(t), y: HEIGHT + 8 + size, "text-anchor": "middle" }) });
      svg.append(node);
      if (other === null) return;
      const [below] = bw.measureLabels([`\u2192 ${other}`], 130).texts;
      svg.append(text(below, { class: "label edit", ...(isSlanted
        ? { transform: `translate(${x(t) + 4 + 1.2 * size} ${HEIGHT + 10}) rotate(-60)`, "text-anchor": "end" }
        : { x: x(t), y: HEIGHT + 8 + 2.3 * size, "text-anchor": "middle" }) }));
    });
    svg.addEventListener("pointermove", (event) =>
      walkTo(Math.floor((event.clientX - svg.getBoundingClientRect().x - LEFT) / pitch)));

    const legend = lines.map(({ kind, name }) => bw.element("span", {}, bw.curveSample(kind), ` ${name}`));
    node.replaceChildren(bw.element("div", { class: "legend" }, ...legend), svg);
  };

  /** What stands in place of token t, or null for a token that stays. */
  function replacementOf(t, ...edits) {
    const edit = edits.find(({ start, stop }) => t >= start && t < stop);
    return edit ? edit.text.split(" ")[t - edit.start] : null;
  }
})(window.bothways);
