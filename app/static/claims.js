// What the texts say, what the papers measured, what our models say, and who is right here.

(function (bw) {
  "use strict";

  const SYMBOLS = { "supported here": "\u2713", "contradicted here": "\u2717", undecided: "?", "exact in the code": "=",
    "cannot be tested here": "\u2013", "not measured yet": "\u2026" };
  const DIGITS = { points: 1, nats: 2, layers: 2 };

  bw.part("claims", function (element, { props }) {
    const claims = JSON.parse(props.value);
    const counts = Object.keys(SYMBOLS).map((verdict) => [verdict, claims.filter((claim) => claim.verdict === verdict).length])
      .filter(([, n]) => n);
    element.replaceChildren(bw.element("section", { class: "claims", "aria-label": "Claims" },
      bw.element("header", { class: "view-head" }, bw.element("h2", {}, "What do the textbooks say, and does it hold here?"),
        bw.element("span", { class: "method" }, "a test holds where the paired bootstrap\u2019s whole 95 % interval lies on the claimed side of 0")),
      bw.element("p", { class: "answer" }, counts.map(([verdict, n]) => `${n} ${verdict}`).join(" \u00b7 "), "."),
      bw.element("p", { class: "legend" }, mark("own"), "our models, with interval", mark("paper"), "the paper\u2019s own difference, other models and data"),
      ...claims.map(row)));
  });

  const mark = (kind) => bw.element("i", { class: `dot ${kind}` });

  const badge = (verdict) => bw.element("span", { class: "verdict-badge", "data-verdict": verdict },
    bw.element("i", { "aria-hidden": "true" }, SYMBOLS[verdict]), verdict);

  function row(claim) {
    return bw.element("article", { "data-claim": claim.key },
      bw.element("div", {}, bw.element("h3", {}, claim.claim),
        bw.element("p", {}, bw.element("b", {}, "Paper: "), claim.paper, bw.element("small", {}, ` ${claim.source}`)),
        claim.note && bw.element("p", {}, bw.element("b", {}, "Mind: "), claim.note) || null),
      bw.element("div", {}, bw.element("p", { class: "head" }, badge(claim.verdict),
        claim.verdict !== "cannot be tested here" && bw.element("button", { type: "button", class: "link",
          onclick: () => bw.openTab(claim.view) }, `look: ${claim.view}`) || null),
      claim.reason && bw.element("p", {}, claim.reason) || null, ...claim.tests.map(test)));
  }

  /** One comparison on its own axis around 0: the claimed side is the right one. */
  function test({ what, verdict, measured, paper }) {
    if (!measured) {
      return bw.element("div", { class: "claim-test" }, bw.element("p", {}, what), badge(verdict));
    }
    const { mean, low, high, unit, n } = measured;
    const reach = 1.1 * Math.max(...[mean, low, high, paper || 0].map(Math.abs)) || 1;
    const at = (x) => `${50 + (50 * x) / reach}%`;
    const digits = DIGITS[unit] === undefined ? 3 : DIGITS[unit];
    const signed = (x) => bw.signed(x, digits);
    return bw.element("div", { class: "claim-test", "data-verdict": verdict }, bw.element("p", {}, what),
      bw.element("div", { class: "track", role: "img", title: n,
        "aria-label": `${signed(mean)} ${unit}, interval ${signed(low)} to ${signed(high)}` },
      bw.element("i", { class: "zero" }),
      bw.element("i", { class: "range own", style: `left: ${at(low)}; width: ${(50 * (high - low)) / reach}%` }),
      bw.element("i", { class: "dot own", style: `left: ${at(mean)}` }),
      paper === null ? null : bw.element("i", { class: "dot paper", style: `left: ${at(paper)}`, title: `paper: ${signed(paper)}` })),
      bw.element("p", { class: "foot" }, bw.element("b", {}, `${signed(mean)} ${unit}`), ` [${signed(low)}, ${signed(high)}]`,
        paper === null ? "" : ` \u00b7 paper ${signed(paper)}`, ` \u00b7 ${n} \u00b7 ${verdict}`));
  }
})(window.bothways);
