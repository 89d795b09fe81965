// Neighbors of the chosen token under any mix: the closed form of elmo/mixing.py, in the browser.

(function (bw) {
  "use strict";

  // What "near" can mean. The first is the default: layers of language models share a strong common
  // direction, which hides what differs; without it cosines tell tokens apart.
  const METRICS = {
    centered: { label: "cosine, mean removed", centered: true },
    cosine: { label: "cosine", centered: false },
    dot: { label: "dot product", centered: false },
    euclidean: { label: "Euclidean", centered: false, smallerIsNearer: true },
  };

  /** (N, pairs) products or norms as if the mean had been subtracted from rows and query. */
  function center(values, rowMean, rowFactor, queryMean, meanNorm) {
    const P = meanNorm.length;
    const result = new Float64Array(values.length);
    for (let i = 0; i < values.length; i++) {
      const p = i % P;
      result[i] = values[i] - rowFactor * rowMean[i] - queryMean[p] + meanNorm[p];
    }
    return result;
  }

  /** Everything ranking needs for one encoder, or null where it could not read the token.
   *
   *  products, norms: (N, pairs); norm: (pairs) of the query; sentences and places say which token
   *  a row is; rows from the text come after those from the bank. */
  function candidates(kind) {
    const { bank, run, query, metric } = bw.state;
    const own = query && query.encoders[kind];
    if (!own || !bank || !run) return null;
    const pools = [
      { source: "examples", products: own.bank, ...bank.encoders[kind] },
      { source: "text", products: own.text, ...run.encoders[kind] },
    ];
    const n = pools.map((pool) => pool.n_rows);
    const meanNorm = bank.encoders[kind].mean_norm;
    const P = meanNorm.length;
    const products = new Float64Array((n[0] + n[1]) * P);
    const norms = new Float64Array((n[0] + n[1]) * P);
    const zero = new Array(P).fill(0);
    const isCentered = METRICS[metric].centered;
    pools.forEach((pool, i) => {
      const start = i * n[0] * P;
      if (isCentered) {
        products.set(center(pool.products, pool.mean_products, 1, own.mean_products, meanNorm), start);
        norms.set(center(pool.norms, pool.mean_products, 2, zero, meanNorm), start);
      } else {
        products.set(pool.products, start);
        norms.set(pool.norms, start);
      }
    });
    const norm = own.norm.map((x, p) =>
      isCentered ? x - 2 * own.mean_products[p] + meanNorm[p] : x);
    const result = { kind, n, P, products, norms, norm, own: n[0] + own.row };
    result.allowed = allowedRows(result);
    result.scores = new Float64Array(n[0] + n[1]);
    return result;
  }

  /** Which rows may be neighbors: not the token itself, no copy of the text's sentences, and what
   *  the filters leave. */
  function allowedRows(set) {
    const { run, filter, source } = bw.state;
    const word = bw.chosenWord();
    const copies = new Set(run.copies);
    const allowed = new Uint8Array(set.n[0] + set.n[1]);
    for (let i = 0; i < allowed.length; i++) {
      const row = placeOf(set, i);
      if (i === set.own || (row.source === "examples" && copies.has(row.sentence))) continue;
      if (source !== "all" && source !== row.source) continue;
      if (filter !== "all" && (filter === "same") !== bw.sameWord(row.word, word)) continue;
      allowed[i] = 1;
    }
    return allowed;
  }

  /** Where a row stands: {source, sentence, token, word, tokens, sense}. */
  function placeOf(set, index) {
    const { bank, run } = bw.state;
    const inBank = index < set.n[0];
    const from = inBank ? bank : run;
    const [sentence, token] = from.encoders[set.kind].places[inBank ? index : index - set.n[0]];
    const tokens = from.sentences[sentence];
    return { source: inBank ? "examples" : "text", sentence, token, tokens, word: tokens[token] };
  }

  /** Scores of all rows for shares s, into set.scores; rows not allowed are left out as NaN. */
  function scoreAll(set, s, gamma) {
    const { metric } = bw.state;
    const weights = bw.pairWeights(s);
    const { P, products, norms, allowed, scores } = set;
    let query = 0;
    for (let p = 0; p < P; p++) query += weights[p] * set.norm[p];
    query = Math.max(query, 0);
    for (let i = 0, at = 0; i < scores.length; i++, at += P) {
      if (!allowed[i]) {
        scores[i] = NaN;
        continue;
      }
      let dot = 0;
      let squared = 0;
      for (let p = 0; p < P; p++) {
        dot += weights[p] * products[at + p];
        squared += weights[p] * norms[at + p];
      }
      squared = Math.max(squared, 0);
      if (metric === "dot") scores[i] = gamma * gamma * dot;
      else if (metric === "euclidean") {
        scores[i] = Math.abs(gamma) * Math.sqrt(Math.max(squared + query - 2 * dot, 0));
      } else {
        const length = Math.sqrt(squared * query);
        scores[i] = length > 0 ? dot / length : 0;
      }
    }
    return scores;
  }

  /** The k nearest rows, nearest first: [{index, score}]. Of equal scores the earlier row first. */
  function rank(set, s, gamma, k) {
    const scores = scoreAll(set, s, gamma);
    const sign = METRICS[bw.state.metric].smallerIsNearer ? -1 : 1;
    const best = []; // kept sorted; k is small
    for (let i = 0; i < scores.length; i++) {
      const score = sign * scores[i];
      if (Number.isNaN(score) || (best.length === k && score <= best[k - 1].key)) continue;
      let at = best.length < k ? best.length : k - 1;
      while (at > 0 && best[at - 1].key < score) {
        best[at] = best[at - 1];
        at--;
      }
      best[at] = { index: i, key: score };
    }
    return best.map(({ index, key }) => ({ index, score: sign * key }));
  }

  /** The score of one row under shares s. */
  function scoreOf(set, index, s, gamma) {
    const only = {
      ...set,
      products: set.products.subarray(index * set.P, (index + 1) * set.P),
      norms: set.norms.subarray(index * set.P, (index + 1) * set.P),
      allowed: [1],
      scores: [0],
    };
    return scoreAll(only, s, gamma)[0];
  }

  // Candidate sets are made once per token and setting, not once per frame.
  const sets = new Map();
  const forget = () => sets.clear();

  function candidatesOf(kind) {
    if (!sets.has(kind)) sets.set(kind, candidates(kind));
    return sets.get(kind);
  }

  for (const topic of ["query", "run", "ranking"]) bw.on(topic, forget);

  Object.assign(bw, { METRICS, candidatesOf, placeOf, rank, scoreOf });
})(window.bothways);
