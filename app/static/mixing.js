// Mixing weights: the numbers (pure functions, the same formulas as elmo/banks/mixing.py) and who drives
// them: sliders, typed values, presets, the sweep, the triangle.

(function (bw) {
  "use strict";

  const LIMIT = 6; // of a raw weight: exp(-12) is 6e-6, a layer alone to the fifth digit
  const MAX_GAMMA = 3;

  // ---- numbers ---------------------------------------------------------------------------------

  /** s_k = exp(w_k) / sum_j exp(w_j). */
  function softmax(w) {
    const top = Math.max(...w);
    const exponentials = w.map((x) => Math.exp(x - top));
    const sum = exponentials.reduce((a, b) => a + b, 0);
    return exponentials.map((x) => x / sum);
  }

  /** s_k s_l of every pair k <= l, in the order of elmo.banks.mixing.layer_pairs. */
  function pairWeights(s) {
    return s.flatMap((a, k) => s.slice(k).map((b) => a * b));
  }

  /** Raw weights, summing to about 0, whose softmax is s; shares of 0 become the slider's end. */
  function rawWeights(s) {
    const logs = s.map((x) => Math.log(Math.max(x, Math.exp(-2 * LIMIT))));
    const middle = (Math.max(...logs) + Math.min(...logs)) / 2;
    return logs.map((x) => Math.max(-LIMIT, Math.min(LIMIT, x - middle)));
  }

  /** What the map of a mix multiplies the layers' coordinates by: every map is in units of its own
   *  spread, so layers are put back to scale and the mix is divided by its spread. */
  function mixFactors({ scale, spread }, s, gamma) {
    const squared = pairWeights(s).reduce((sum, weight, p) => sum + weight * spread[p], 0);
    const own = Math.sqrt(Math.max(squared, 1e-12));
    return s.map((share, k) => (gamma * share * scale[k]) / own);
  }

  /** Coordinates (R, L, 2) and factors (L) -> mixed x and y (R), written into the arrays given. */
  function mixCoordinates(coordinates, factors, x, y) {
    const L = factors.length;
    for (let row = 0, at = 0; row < x.length; row++) {
      let sumX = 0;
      let sumY = 0;
      for (let k = 0; k < L; k++, at += 2) {
        sumX += factors[k] * coordinates[at];
        sumY += factors[k] * coordinates[at + 1];
      }
      x[row] = sumX;
      y[row] = sumY;
    }
  }

  /** Shares in few words: ".21 · .47 · .32", ".25 each", "layer 2 alone". */
  function shareText(s) {
    const alone = s.findIndex((x) => x >= 0.995);
    if (alone >= 0) return `layer ${alone} alone`;
    const short = (x) => x.toFixed(2).replace(/^0/, "");
    if (s.every((x) => Math.abs(x - s[0]) < 0.005)) return `${short(s[0])} each`;
    return s.map(short).join(" \u00b7 ");
  }

  /** A layer's shade of its encoder's color, the top layer all of it: {strength} in percent, and {tone},
   *  which says what letters on it can be read. */
  function shadeOf(k, n_layers) {
    const least = Math.max(28, 100 - 30 * (n_layers - 1));
    const strength = n_layers > 1 ? least + ((100 - least) * k) / (n_layers - 1) : 100;
    return { strength, tone: strength > 85 ? "strong" : strength > 45 ? "middle" : "weak" };
  }

  // ---- state -----------------------------------------------------------------------------------

  const weights = {}; // kind of encoder -> {w, gamma, s}
  let frame = null;
  let settle = null;
  const changed = new Set();

  /** Layers alike for encoders that are new or have another depth; the others keep their mix. */
  function fitWeights(encoders) {
    for (const kind of Object.keys(weights)) if (!encoders[kind]) delete weights[kind];
    for (const [kind, { n_layers }] of Object.entries(encoders)) {
      if (weights[kind] && weights[kind].w.length === n_layers) continue;
      const w = new Array(n_layers).fill(0);
      weights[kind] = { w, gamma: 1, s: softmax(w) };
    }
  }

  /** Sets some of {w, gamma} of an encoder; views follow in the next frame. */
  function setWeights(kind, change) {
    const mix = weights[kind];
    if (change.w) {
      mix.w = change.w.map((x) => Math.max(-LIMIT, Math.min(LIMIT, x)));
      mix.s = softmax(mix.w);
    }
    if (change.gamma != null) mix.gamma = Math.max(0, Math.min(MAX_GAMMA, change.gamma));
    changed.add(kind);
    if (frame === null) {
      frame = requestAnimationFrame(() => {
        frame = null;
        for (const each of changed) bw.emit("weights", each);
        changed.clear();
      });
    }
    // Arrow keys fire no release; a short rest counts as one.
    clearTimeout(settle);
    settle = setTimeout(() => bw.emit("settled", kind), 180);
  }

  Object.assign(bw, {
    softmax, pairWeights, rawWeights, mixFactors, mixCoordinates, shareText, shadeOf, weights, fitWeights,
    setWeights,
    LIMIT, MAX_GAMMA,
  });
})(window.bothways);
