// All mixes of three layers as a triangle: each corner is one layer alone. Its color says what a
// mix is good for; its dot is the sliders, and can be dragged or moved with arrow keys.

(function (bw) {
  "use strict";

  const SIDE = 100; // of the triangle, in units of the drawing
  const HEIGHT = (SIDE * Math.sqrt(3)) / 2;
  // Layer 0 at the lower left, 1 at the lower right, 2 at the top.
  const CORNERS = [[0, HEIGHT], [SIDE, HEIGHT], [SIDE / 2, 0]];

  const toPoint = (s) => [0, 1].map((i) => s.reduce((sum, x, k) => sum + x * CORNERS[k][i], 0));

  const MARKS = { syntactic: "M-3.5-3.5h7v7h-7Z", semantic: "M0-5L5 0L0 5L-5 0Z", other: "M-4 0A4 4 0 1 0 4 0A4 4 0 1 0-4 0Z" };

  /** What stands for a task: a square for one of syntax, a diamond for one of meaning, else a circle. */
  const taskMark = (kind) => bw.svg("path", { d: MARKS[kind] });

  /** The shares of the mix nearest to a point of the drawing. */
  function toShares([x, y]) {
    const two = 1 - y / HEIGHT;
    const one = x / SIDE - two / 2;
    const s = [1 - one - two, one, two].map((value) => Math.max(0, value));
    const sum = s[0] + s[1] + s[2];
    return s.map((value) => value / sum);
  }

  /** Every small triangle of the grid with the mean of its corners' values. */
  function cells(steps, values) {
    const index = (one, two) => (two * (2 * steps + 3 - two)) / 2 + one;
    const place = (one, two) => toPoint([steps - one - two, one, two].map((x) => x / steps));
    const result = [];
    for (let two = 0; two < steps; two++) {
      for (let one = 0; one < steps - two; one++) {
        const up = [[one, two], [one + 1, two], [one, two + 1]];
        const down = [[one + 1, two], [one + 1, two + 1], [one, two + 1]];
        for (const corners of one + 1 < steps - two ? [up, down] : [up]) {
          const mean = corners.reduce((sum, c) => sum + values[index(...c)], 0) / 3;
          result.push({ points: corners.map((c) => place(...c)), mean });
        }
      }
    }
    return result;
  }

  bw.triangle = function (host) {
    const fill = bw.svg("g", { class: "cells", "shape-rendering": "crispEdges" });
    const outline = bw.svg("polygon", { class: "outline", points: CORNERS.join(" ") });
    const dot = bw.svg("circle", { class: "dot", r: 6, tabindex: 0, role: "slider",
      "aria-label": "mix of the three layers; arrow keys move it" });
    const names = ["0", "1", "layer 2"].map((text, k) => bw.svg("text", {
      class: "corner", "text-anchor": "middle",
      x: CORNERS[k][0], y: CORNERS[k][1] + (k === 2 ? -5 : 11),
    }, text));
    const tasks = bw.svg("g", {}); // the mixes that tasks learned
    const drawing = bw.svg("svg", { class: "triangle", viewBox: `-8 -14 ${SIDE + 16} ${HEIGHT + 28}` },
      fill, outline, tasks, ...names, dot);
    host.replaceChildren(drawing);
    // Text and dot keep their size on the screen, whatever the size of the drawing.
    new ResizeObserver(() => {
      const matrix = drawing.getScreenCTM();
      if (matrix && matrix.a) drawing.style.setProperty("--unit", 1 / matrix.a);
    }).observe(drawing);

    function draw() {
      const { query } = bw.state;
      if (!query) return;
      const { steps, values } = query.triangle || {};
      if (!values) return fill.replaceChildren();
      const low = Math.min(...values);
      const high = Math.max(...values);
      fill.replaceChildren(...cells(steps, values).map(({ points, mean }) => {
        const strength = high > low ? (mean - low) / (high - low) : 0.5;
        const cell = bw.svg("polygon", { points: points.join(" "), class: "cell" });
        cell.style.setProperty("--strength", `${Math.round(100 * strength)}%`);
        return cell;
      }));
    }

    function move() {
      const { s } = bw.weights[bw.state.bank.lead];
      if (s.length !== CORNERS.length) return; // other depths have no triangle
      const [x, y] = toPoint(s);
      dot.style.transform = `translate(${x}px, ${y}px) scale(var(--unit, 1))`;
      dot.setAttribute("aria-valuetext", s.map((v, k) => `layer ${k} ${v.toFixed(2)}`).join(", "));
      dot.setAttribute("aria-valuenow", s[2].toFixed(2));
    }

    function markTasks() {
      const { lead, encoders } = bw.state.bank;
      tasks.replaceChildren(...encoders[lead].tasks.filter(({ s }) => s.length === CORNERS.length).map(({ what, kind, s }) => {
        const [x, y] = toPoint(s);
        const mark = bw.svg("g", { class: "triangle-mark" }, bw.svg("title", {}, `${what}: ${bw.shareText(s)}`), taskMark(kind));
        mark.style.transform = `translate(${x}px, ${y}px) scale(var(--unit, 1))`;
        return mark;
      }));
    }

    function choose(s) {
      bw.emit("taken"); // the visitor's hand ends a running sweep
      bw.setWeights(bw.state.bank.lead, { w: bw.rawWeights(s) });
    }

    drawing.addEventListener("pointerdown", (event) => {
      drawing.setPointerCapture(event.pointerId);
      follow(event);
      dot.focus({ preventScroll: true });
      event.preventDefault();
    });
    drawing.addEventListener("pointermove", (event) => {
      if (drawing.hasPointerCapture(event.pointerId)) follow(event);
    });

    function follow(event) {
      const matrix = drawing.getScreenCTM().inverse();
      const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(matrix);
      choose(toShares([point.x, point.y]));
    }

    dot.addEventListener("keydown", (event) => {
      const step = event.shiftKey ? 10 : 3;
      const by = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, -step],
        ArrowDown: [0, step] }[event.key];
      if (!by) return;
      event.preventDefault();
      const [x, y] = toPoint(bw.weights[bw.state.bank.lead].s);
      choose(toShares([x + by[0], y + by[1]]));
    });

    bw.on("query", draw);
    bw.on("weights", (kind) => kind === bw.state.bank.lead && move());
    bw.whenKnown(() => {
      markTasks();
      move();
    });
    draw();
  };

  bw.taskMark = taskMark;

  // What can be asked of the nearest: see app/views/triangle.py.
  bw.QUESTIONS = { sense: "same sense", word: "same word", NOUN: "nouns", VERB: "verbs", ADJ: "adjectives",
    ADV: "adverbs", examples: "all senses" };
})(window.bothways);
