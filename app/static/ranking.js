// Neighbors of the chosen token under any mix: the closed form of elmo/banks/mixing.py, in the
// browser. The server sends, for each encoder, few tokens (candidates) that hold the 20 nearest of
// every mix, and their products; filters and the mean are dealt with there.

(function (bw) {
  "use strict";

  const METRICS = { cosine: "cosine", dot: "dot product", euclidean: "Euclidean" };

  /** How near is measured, in few words. */
  function nearText() {
    const { metric, centered, unit } = bw.state.near ? bw.state.near.choice : bw.state.choice;
    const mean = centered && metric !== "euclidean" ? ", mean removed" : "";
    return METRICS[metric] + mean + (unit ? ", layers at length 1" : "");
  }

  const smallerIsNearer = () => bw.state.near.choice.metric === "euclidean";

  /** Everything ranking needs for one encoder, or null where it could not read the token or no bank
   *  is there.
   *
   *  products, norms: (P, M), pairs of layers by candidates; norm: (P) of the chosen token. */
  function candidates(kind) {
    const { near } = bw.state;
    const own = near && near.encoders[kind];
    if (!own) return null;
    const M = own.rows.length / 3;
    return { ...own, kind, M, products: bw.unpack(own.products), norms: bw.unpack(own.norms),
      scores: new Float64Array(M), squared: new Float64Array(M), places: new Array(M) };
  }

  /** Where a candidate stands: {pool, number, token, tokens, word, tag, key}; tag: [lemma, part of
   *  speech, gloss, supersense] or null. */
  function placeOf(set, index) {
    if (!set.places[index]) {
      const { near } = bw.state;
      const [sentence, token, tag] = set.rows.slice(3 * index, 3 * index + 3);
      const [pool, number, tokens] = near.sentences[sentence];
      set.places[index] = { pool, number, token, tokens, word: tokens[token],
        tag: tag < 0 ? null : near.tags[tag], key: `${pool} ${number} ${token}` };
    }
    return set.places[index];
  }

  /** Scores of all candidates for shares s, into set.scores. */
  function scoreAll(set, s, gamma) {
    const { metric } = bw.state.near.choice;
    const weights = bw.pairWeights(s);
    const { M, products, norms, scores, squared } = set;
    const own = Math.max(0, weights.reduce((sum, weight, p) => sum + weight * set.norm[p], 0));
    scores.fill(0);
    squared.fill(0);
    weights.forEach((weight, p) => {
      for (let i = 0, at = p * M; i < M; i++, at++) {
        scores[i] += weight * products[at];
        squared[i] += weight * norms[at];
      }
    });
    for (let i = 0; i < M; i++) {
      const length = Math.max(squared[i], 0);
      if (metric === "dot") scores[i] *= gamma * gamma;
      else if (metric === "euclidean") {
        scores[i] = Math.abs(gamma) * Math.sqrt(Math.max(length + own - 2 * scores[i], 0));
      } else scores[i] = length * own > 0 ? scores[i] / Math.sqrt(length * own) : 0;
    }
    return scores;
  }

  /** The k nearest, nearest first: [{index, score}]. Of equal scores the earlier row first. */
  function rank(set, s, gamma, k) {
    const scores = scoreAll(set, s, gamma);
    const sign = smallerIsNearer() ? -1 : 1;
    const best = []; // kept sorted; k is small
    for (let i = 0; i < scores.length; i++) {
      const score = sign * scores[i];
      if (best.length === k && score <= best[k - 1].key) continue;
      let at = best.length < k ? best.length : k - 1;
      while (at > 0 && best[at - 1].key < score) {
        best[at] = best[at - 1];
        at--;
      }
      best[at] = { index: i, key: score };
    }
    return best.map(({ index, key }) => ({ index, score: sign * key }));
  }

  /** Overlap of two lists of keys: those in both by those in either. */
  function jaccard(a, b) {
    const other = new Set(b);
    const both = a.filter((key) => other.has(key)).length;
    const either = a.length + b.length - both;
    return either ? both / either : 1;
  }

  // Candidates are unpacked once for each answer, not once a frame.
  const sets = new Map();
  bw.on("near", () => sets.clear());

  function candidatesOf(kind) {
    if (!sets.has(kind)) sets.set(kind, candidates(kind));
    return sets.get(kind);
  }

  // ---- what to look in ------------------------------------------------------------------------

  /** Whether the large bank is chosen, is there, and is not in the answer that is on the page. */
  function isWaiting() {
    const { near, choice, pools } = bw.state;
    if (!near || !choice.pools.includes("wordnet")) return false;
    const known = near.choice.pools.includes("wordnet") ? near.pools.wordnet.ready.length : 0;
    return pools.wordnet.ready.length > known;
  }

  /** Whether an answer is about the chosen token and what is now chosen to be near; the large bank
   *  may still be missing in it. */
  function fits(near) {
    if (!near || !bw.isChosen(...near.place)) return false;
    const plain = ({ pools, ...rest }) => JSON.stringify([[...pools].filter((name) => name !== "wordnet").sort(),
      Object.entries(rest).sort()]);
    return plain(near.choice) === plain(bw.state.choice);
  }

  /** What goes along with every event of a part that has several: they share one value, and of
   *  quick ones the last is read (app/events.py). */
  const sent = (more) => ({ ...bw.state.choice, ...bw.state.chosen, text: bw.state.run.text, ...more });

  /** Asks for what is missing after every quick answer, where the part is on the screen. */
  function asksForMore(element, trigger) {
    const ask = () => {
      const { near } = bw.state;
      if (!element.offsetParent || !near || (fits(near) && !isWaiting())) return;
      trigger("near", sent());
    };
    bw.on("pools", ask); // comes with every answer, and while a bank is being read
    new IntersectionObserver((entries) => entries.some((e) => e.isIntersecting) && ask())
      .observe(element);
  }

  /** Where neighbors come from: "6 sentences + 746 of our examples + 48,224 of WordNet". */
  function poolsText() {
    const { near, run, pools } = bw.state;
    const names = {
      text: `${run.sentences.length} sentence${run.sentences.length === 1 ? "" : "s"}`,
      examples: `${pools.n_examples} of our examples`,
      wordnet: `${pools.wordnet.n_sentences.toLocaleString("en")} of WordNet`,
      upload: pools.upload ? `${pools.upload.n_sentences} of ${pools.upload.name}` : "",
    };
    return ["text", "examples", "wordnet", "upload"]
      .filter((name) => near.choice.pools.includes(name) && names[name])
      .map((name) => names[name]).join(" + ");
  }

  Object.assign(bw, { METRICS, nearText, candidatesOf, placeOf, rank, jaccard,
    fits, isWaiting, sent, asksForMore, poolsText });
})(window.bothways);
