// The token strip: every token of the text as a button. One of them is in the tab order; arrow keys
// walk through the text, Enter or a click chooses.

(function (bw) {
  "use strict";

  bw.part("strip", function (element, { trigger }) {
    const status = bw.element("p", { class: "status", role: "status" });
    const list = bw.element("ol", { class: "sentences", "aria-label": "Tokens of the text" });
    element.replaceChildren(status, list);
    let buttons = []; // by sentence, by position

    function draw() {
      const { run } = bw.state;
      const cut = new Set(run.truncated.map(([s, t]) => `${s} ${t}`));
      buttons = run.sentences.map((tokens, s) =>
        tokens.map((token, t) => tokenButton(token, s, t, cut.has(`${s} ${t}`))));
      list.replaceChildren(...buttons.map((row, s) => {
        const words = row.flatMap((button) => [button, " "]);
        return bw.element("li", {}, bw.element("span", { class: "number" }, String(s + 1)),
          bw.element("span", { class: "words", dir: "auto" }, ...words));
      }));
      mark(true);
      report();
    }

    function tokenButton(token, s, t, isCut) {
      const title = isCut && `${bw.state.run.bytes_read} bytes of this word are read, the rest is not`;
      return bw.element("button", {
        class: isCut ? "token cut" : "token", type: "button", tabindex: "-1", title,
        "data-sentence": s, "data-token": t,
      }, token);
    }

    function report() {
      const { run } = bw.state;
      const n = run.sentences.length;
      const tokens = run.sentences.reduce((sum, s) => sum + s.length, 0);
      const parts = [`${n} sentence${n === 1 ? "" : "s"}`, `${tokens} token${tokens === 1 ? "" : "s"}`];
      if (run.milliseconds !== null) parts.push(`${run.milliseconds} ms`);
      if (run.truncated.length) parts.push(`${run.truncated.length} cut`);
      status.textContent = parts.join(" \u00b7 ");
    }

    /** The chosen token filled, its copies underlined, those caught by a lasso outlined. */
    function mark(isNewText) {
      const word = bw.chosenWord();
      const caught = new Set(bw.state.lasso.map(([s, t]) => `${s} ${t}`));
      buttons.forEach((row, s) => row.forEach((button, t) => {
        const isChosen = bw.isChosen(s, t);
        button.classList.toggle("chosen", isChosen);
        button.classList.toggle("copy", !isChosen && bw.sameWord(button.textContent, word));
        button.classList.toggle("caught", caught.has(`${s} ${t}`));
        button.setAttribute("aria-pressed", isChosen);
        button.tabIndex = isChosen ? 0 : -1;
      }));
      const { sentence, token } = bw.state.chosen;
      const chosen = buttons[sentence] && buttons[sentence][token];
      if (!chosen) return;
      if (isNewText) list.scrollTop = 0;
      const top = chosen.offsetTop - list.offsetTop;
      if (top < list.scrollTop || top + chosen.offsetHeight > list.scrollTop + list.clientHeight) {
        list.scrollTop = top - list.clientHeight / 2;
      }
    }

    list.addEventListener("click", (event) => {
      const button = event.target.closest(".token");
      if (!button) return;
      const sentence = Number(button.dataset.sentence);
      const token = Number(button.dataset.token);
      bw.choose(sentence, token);
      trigger("select", { sentence, token });
    });

    list.addEventListener("keydown", (event) => {
      const button = event.target.closest(".token");
      if (!button) return;
      const s = Number(button.dataset.sentence);
      const t = Number(button.dataset.token);
      const flat = buttons.flat();
      const at = flat.indexOf(button);
      const inSentence = (row) => row && row[Math.min(t, row.length - 1)];
      const next = {
        ArrowRight: flat[at + 1], ArrowLeft: flat[at - 1],
        ArrowDown: inSentence(buttons[s + 1]), ArrowUp: inSentence(buttons[s - 1]),
        Home: buttons[s][0], End: buttons[s][buttons[s].length - 1],
      }[event.key];
      if (!next) return;
      event.preventDefault();
      next.focus();
    });

    bw.on("run", draw);
    bw.on("chosen", () => mark(false));
    bw.on("lasso", () => mark(false));
    let wait = null;
    bw.on("busy", (busy) => {
      clearTimeout(wait);
      if (busy) wait = setTimeout(() => { status.textContent = "reading \u2026"; }, 150);
      else if (bw.state.run) report();
    });
    if (bw.state.run) draw();
  });

  // The picker is empty when the text is the visitor's own; Gradio has no placeholder for it.
  bw.on("run", () => {
    const input = document.querySelector("#picker input");
    if (input) input.placeholder = "your own text";
  });

  // A short wait shows nothing; a longer one says so.
  document.addEventListener("click", (event) => {
    if (event.target.closest && event.target.closest("#run")) bw.emit("busy", true);
  });

  // Ctrl+Enter (or Command+Enter) in the text box runs.
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    if (!event.target.closest || !event.target.closest("#text")) return;
    event.preventDefault();
    document.querySelector("#run").click();
  });
})(window.bothways);
