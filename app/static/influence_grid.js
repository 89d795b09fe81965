// Influence grids: the numbers (pure functions, the formulas of elmo/both_ways/arithmetic.py) and how
// one grid is drawn.

(function (bw) {
  "use strict";

  const REACHABLE = 1; // bits of a cell's state
  const CHANGED = 2;

  // ---- numbers ---------------------------------------------------------------------------------

  /** Adds the samples of one piece to an encoder's grid (null at first). */
  function addPiece(grid, piece) {
    const { n_samples, n_layers, parts } = piece;
    const state = Uint8Array.from(atob(piece.state), (c) => c.charCodeAt(0));
    const cross = bw.unpack(piece.cross);
    const size = cross.length / n_samples;
    const samples = Array.from({ length: n_samples }, (_, r) => cross.subarray(r * size, (r + 1) * size));
    if (!grid) return { n_layers, parts, samples, own: bw.unpack(piece.own), state };
    for (let i = 0; i < state.length; i++) grid.state[i] |= state[i];
    grid.samples.push(...samples);
    return grid;
  }

  /** Influence of every j on every t, and its standard error over samples: two (n * n) arrays. */
  function influence(grid, n, part, s, measure) {
    const weights = bw.pairWeights(s);
    const cells = n * n;
    const R = grid.samples.length;
    const halves = part === "whole" ? grid.parts.map((_, i) => i) : [grid.parts.indexOf(part)];
    const length = new Float64Array(n); // squared, of the unedited vectors
    const squares = new Float64Array(R * cells);
    for (const half of halves) {
      weights.forEach((weight, p) => {
        if (weight === 0) return;
        const block = half * weights.length + p;
        for (let t = 0; t < n; t++) length[t] += weight * grid.own[block * n + t];
        for (let r = 0; r < R; r++) {
          const cross = grid.samples[r];
          for (let i = 0, at = block * cells, to = r * cells; i < cells; i++) {
            squares[to + i] += weight * cross[at + i];
          }
        }
      });
    }
    const value = new Float64Array(cells);
    const error = new Float64Array(cells);
    for (let i = 0; i < cells; i++) {
      const scale = measure === "gradient" ? 1 : length[i % n];
      let sum = 0;
      for (let r = 0; r < R; r++) {
        const at = r * cells + i;
        squares[at] = scale > 0 ? Math.max(0, squares[at]) / scale : 0;
        sum += squares[at];
      }
      const mean = sum / R;
      value[i] = Math.sqrt(mean);
      if (R < 2 || !mean) continue;
      let spread = 0;
      for (let r = 0; r < R; r++) spread += (squares[r * cells + i] - mean) ** 2;
      error[i] = Math.sqrt(spread / (R - 1) / R) / (2 * value[i]);
    }
    return { value, error };
  }

  /** Which cells changed, and which could: bits of every cell (n * n) under the shares s. */
  function cellStates(grid, n, part, s) {
    const names = grid.parts[0] === "whole" ? ["whole"] : ["whole", ...grid.parts];
    const cells = n * n;
    const states = new Uint8Array(cells);
    s.forEach((share, k) => {
      if (share === 0) return;
      const at = (names.indexOf(part) * grid.n_layers + k) * cells;
      for (let i = 0; i < cells; i++) states[i] |= grid.state[at + i];
    });
    return states;
  }

  /** Of the cells that nothing can reach: how many there are, and how many differ all the same. */
  function countZeros(states) {
    let n_zero = 0;
    let n_broken = 0;
    for (const state of states) {
      if (state & REACHABLE) continue;
      n_zero += 1;
      if (state & CHANGED) n_broken += 1;
    }
    return { n_zero, n_broken };
  }

  const isZero = (state) => !(state & CHANGED);

  // ---- drawing ---------------------------------------------------------------------------------

  /** 65 steps from the ground to a color. */
  function ramp(color) {
    const [from, to] = ["shade-ground", color].map((name) => bw.channels(bw.color(name)));
    return Array.from({ length: 65 }, (_, i) =>
      `rgb(${from.map((x, c) => Math.round(x + ((to[c] - x) * i) / 64)).join(" ")})`);
  }

  const ANGLE = Math.PI / 3;

  function font(strong) {
    return `${strong ? 700 : 400} ${bw.size("small")}px "IBM Plex Sans", sans-serif`;
  }

  /** Tokens as labels, cut where they are very long, with their widths in pixels. */
  function measureLabels(tokens, limit) {
    const context = document.createElement("canvas").getContext("2d");
    context.font = font(true);
    const texts = tokens.map((token) => {
      if (context.measureText(token).width <= limit) return token;
      const letters = [...token];
      while (letters.length > 1 && context.measureText(`${letters.join("")}\u2026`).width > limit) letters.pop();
      return `${letters.join("")}\u2026`;
    });
    return { texts, width: Math.ceil(Math.max(...texts.map((text) => context.measureText(text).width))) };
  }

  /** One grid. Calls on.point([j, t] or null, event) under the pointer, on.pick([j, t]) and, from the
   *  keyboard, on.walk([rows, columns]). The canvas is wider than its node: slanted labels reach out
   *  to the left, and must not catch the pointer there. */
  bw.GridCanvas = class {
    constructor(on) {
      this.canvas = bw.element("canvas", {});
      this.node = bw.element("div", { tabindex: "0", role: "application", class: "grid", "data-arrows": true }, this.canvas);
      this.geometry = null;
      const at = (event) => {
        if (!this.geometry) return null;
        const { left, cell, n } = this.geometry;
        const t = Math.floor((event.offsetX - left) / cell);
        const j = Math.floor(event.offsetY / cell);
        return j >= 0 && t >= 0 && j < n && t < n ? [j, t] : null;
      };
      this.node.addEventListener("pointermove", (event) => on.point(at(event), event));
      this.node.addEventListener("pointerleave", () => on.point(null));
      this.node.addEventListener("click", (event) => at(event) && on.pick(at(event)));
      this.node.addEventListener("keydown", (event) => {
        const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
        if (!step) return;
        event.preventDefault();
        on.walk(step);
      });
    }

    /** shape: {n, cell, left, labels}; data: {value, states, top, colors, stairs}; marks: {pair, near}.
     *  left: pixels for the rows' labels, 0 for none. */
    draw(shape, data, marks) {
      const { n, cell, left, labels } = shape;
      this.geometry = shape;
      const side = n * cell;
      const height = side + Math.ceil(labels.width * Math.sin(ANGLE)) + 14;
      const overhang = left ? 2 : Math.ceil(labels.width * Math.cos(ANGLE)) + 2;
      const width = overhang + left + side + 2;
      const ratio = window.devicePixelRatio || 1;
      const { canvas } = this;
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
      Object.assign(canvas.style, { left: `${-overhang}px`, width: `${width}px`, height: `${height}px` });
      Object.assign(this.node.style, { width: `${left + side}px`, height: `${height}px` });
      const context = canvas.getContext("2d");
      context.scale(ratio, ratio);
      context.translate(overhang, 0);
      const gap = cell >= 8 ? 1 : 0;
      const zero = bw.color("line");
      for (let j = 0; j < n; j++) {
        for (let t = 0; t < n; t++) {
          const i = j * n + t;
          const shade = data.top > 0 ? Math.sqrt(Math.min(1, data.value[i] / data.top)) : 0;
          context.fillStyle = isZero(data.states[i]) ? zero : data.colors[Math.round(64 * shade)];
          context.fillRect(left + t * cell, j * cell, cell - gap, cell - gap);
        }
      }
      this.#frame(context, shape, data.stairs);
      if (marks.pair) this.#mark(context, shape, marks.pair, bw.color("ink"), 2);
      if (marks.near) this.#mark(context, shape, marks.near, bw.color("second"), 1.5);
      this.#write(context, shape, marks);
    }

    /** The ground's edge, and the two stairs between which only the token itself lies. */
    #frame(context, { n, cell, left }, stairs) {
      context.strokeStyle = bw.color("dot");
      context.lineWidth = 1;
      context.strokeRect(left - 0.5, 0.5, n * cell, n * cell - 1);
      if (!stairs) return;
      context.strokeStyle = bw.color("second");
      context.beginPath();
      for (let i = 1; i < n; i++) {
        const at = i * cell - 0.5;
        context.moveTo(left + at, at - cell);
        context.lineTo(left + at, at);
        context.lineTo(left + at + cell, at);
        context.moveTo(left + at - cell, at);
        context.lineTo(left + at, at);
        context.lineTo(left + at, at + cell);
      }
      context.stroke();
    }

    #mark(context, { cell, left }, [j, t], color, width) {
      context.strokeStyle = color;
      context.lineWidth = width;
      context.strokeRect(left + t * cell - 0.5, j * cell - 0.5, cell, cell);
    }

    #write(context, { n, cell, left, labels }, { pair, near }) {
      const every = Math.ceil((0.9 * bw.size("small")) / cell);
      const wanted = (i, axis) => [pair, near].some((place) => place && place[axis] === i);
      const crowded = (i, axis) => every > 1 && [pair, near].some((place) =>
        place && place[axis] !== i && Math.abs(place[axis] - i) < every);
      const shown = (i, axis) => wanted(i, axis) || (i % every === 0 && !crowded(i, axis));
      context.textBaseline = "middle";
      context.textAlign = "right";
      const style = (strong) => {
        context.font = font(strong);
        context.fillStyle = bw.color(strong ? "ink" : "second");
      };
      for (let i = 0; i < n; i++) {
        if (left && shown(i, 0)) {
          style(wanted(i, 0));
          context.fillText(labels.texts[i], left - 6, (i + 0.5) * cell);
        }
        if (!shown(i, 1)) continue;
        style(wanted(i, 1));
        context.save();
        context.translate(left + (i + 0.5) * cell + 3, n * cell + 6);
        context.rotate(-ANGLE);
        context.fillText(labels.texts[i], 0, 0);
        context.restore();
      }
    }
  };

  Object.assign(bw, { influence, cellStates, countZeros, ramp, measureLabels,
    addInfluencePiece: addPiece, isZeroCell: isZero });
})(window.bothways);
