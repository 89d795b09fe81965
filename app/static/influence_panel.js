// One influence grid with its name, its layer, and the count of its exact zeros.

(function (bw) {
  "use strict";

  /** Which grids are shown: ELMo's halves and their concatenation, every other encoder's whole. */
  function panelList(encoders) {
    return encoders.flatMap((encoder) => {
      const { kind, name } = encoder;
      if (kind !== "bilm") return [{ encoder, part: "whole", name, vectors: `in ${name.toLowerCase()}` }];
      return [
        { encoder, part: "forward", name: `${name}, forward \u2192`, vectors: "forward halves" },
        { encoder, part: "backward", name: `${name}, backward \u2190`, vectors: "backward halves" },
        { encoder, part: "whole", name: `${name}, concatenated`, vectors: "concatenated" },
      ];
    });
  }

  /** on: {point(panel, place, event), pick(place), walk(step)}. */
  function makePanel({ encoder, part, name, vectors }, on) {
    const { kind, n_layers } = encoder;
    const canvas = new bw.GridCanvas({ ...on, point: (place, event) => on.point(panel, place, event) });
    const layer = bw.element("small", {});
    const foot = bw.element("p", { class: "foot" });
    const blank = bw.element("p", { class: "blank", hidden: true });
    const element = bw.element("section", { class: "influence-panel", "data-encoder": kind,
      "data-part": part }, bw.element("h3", {}, name, " ", layer), canvas.node, blank, foot);
    const panel = { encoder, part, name, vectors, layer, blank, element, canvas, data: null, compute, dataAt, valueText, tellZeros };

    /** The numbers of a depth: {value, error, states, n_zero, n_broken}, or null where there are none. */
    function dataAt(held, depth) {
      const grid = held.grids[kind];
      const shares = bw.sharesAt(depth, kind, n_layers);
      if (!grid || !shares) return null;
      const n = held.tokens.length;
      const states = bw.cellStates(grid, n, part, shares);
      return { ...bw.influence(grid, n, part, shares, held.measure), states, ...bw.countZeros(states) };
    }

    function compute(held) {
      const hasLayer = Boolean(bw.sharesAt(bw.state.depth, kind, n_layers));
      panel.data = dataAt(held, bw.state.depth);
      layer.textContent = hasLayer ? bw.depthName(n_layers) : "";
      blank.hidden = Boolean(panel.data);
      blank.textContent = held.unread[kind] || (hasLayer ? "computing \u2026" : `has layers 0 to ${n_layers - 1}`);
      canvas.node.hidden = !panel.data;
    }

    function valueText(data, i) {
      if (!data) return "\u2013";
      if (bw.isZeroCell(data.states[i])) return "exactly 0";
      return bw.figure(data.value[i]) + (data.error[i] ? ` \u00b1 ${bw.figure(data.error[i])}` : "");
    }

    function tellZeros(held) {
      const say = (figure, text) => foot.replaceChildren(bw.element("b", {}, figure), text);
      if (!panel.data) return say("", "");
      const { n_zero, n_broken, states } = panel.data;
      const n = held.tokens.length;
      if (n_broken) return say(`${n_broken} of ${n_zero}`, " differ, and must not");
      if (n_zero) return say(`${n_zero} of ${n_zero}`, " cells exactly 0");
      const pairs = n * n - n;
      if (encoder.halves) return say(`${throughOneHalf(held)} of ${pairs}`, " pairs move in one half only");
      let moved = 0;
      states.forEach((state, i) => { moved += Number(i % (n + 1) !== 0 && !bw.isZeroCell(state)); });
      return say(`${moved} of ${pairs}`, " pairs move as a whole");
    }

    /** Pairs of different tokens where one half moves and the other is exactly unchanged. */
    function throughOneHalf(held) {
      const grid = held.grids[kind];
      const n = held.tokens.length;
      const shares = bw.sharesAt(bw.state.depth, kind, n_layers);
      const [first, second] = grid.parts.map((half) => bw.cellStates(grid, n, half, shares));
      let count = 0;
      for (let i = 0; i < n * n; i++) {
        count += Number(i % (n + 1) !== 0 && bw.isZeroCell(first[i]) !== bw.isZeroCell(second[i]));
      }
      return count;
    }

    return panel;
  }

  bw.influencePanels = (encoders, on) => panelList(encoders).map((each) => makePanel(each, on));
})(window.bothways);
