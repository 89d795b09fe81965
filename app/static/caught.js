// What a lasso caught: every token in its sentence, in place of the neighbors until it is let go.

(function (bw) {
  "use strict";

  bw.part("caught", function (element, { trigger }) {
    const title = bw.element("h3", {});
    const method = bw.element("span", { class: "method" }, "a click chooses the token");
    const list = bw.element("ol", { class: "caught-list" });
    const section = bw.element("section", { class: "caught", hidden: true, "aria-label": "Caught tokens" },
      bw.element("header", { class: "row-head" }, title,
        bw.element("button", { type: "button", class: "pill", onclick: () => {
          bw.state.lasso = [];
          bw.emit("lasso");
        } }, "let go"), method),
      list);
    element.replaceChildren(section);

    function row([s, t]) {
      const tokens = bw.state.run.sentences[s];
      const [left, word, right] = bw.context({ tokens, token: t }, 14);
      return bw.element("li", {}, bw.element("button", { type: "button", class: "neighbor",
        title: tokens.join(" "), onclick: () => {
          bw.choose(s, t);
          trigger("select", { sentence: s, token: t });
        } },
      bw.element("span", { class: "context" }, left, bw.element("b", {}, word), right),
      bw.element("span", { class: "score" }, String(s + 1))));
    }

    function draw() {
      const { lasso } = bw.state;
      section.hidden = !lasso.length;
      if (!lasso.length) return;
      title.textContent = `${lasso.length} token${lasso.length === 1 ? "" : "s"} caught`;
      const inOrder = [...lasso].sort(([s, t], [u, v]) => s - u || t - v);
      list.replaceChildren(...inOrder.map(row));
    }

    bw.on("lasso", draw);
    bw.on("run", draw);
  });
})(window.bothways);
