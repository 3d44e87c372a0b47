// Tries rules on past jobs.
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  const place = document.getElementById("replayed"), words = place.dataset, button = document.getElementById("replay");
  const add = (parent, kind, text) => {
    const made = document.createElement(kind);
    if (text !== undefined) made.textContent = text;
    parent.append(made);
    return made;
  };
  const table = (heads, rows) => {
    const box = add(place, "div");
    box.className = "wide";
    const made = add(box, "table"), head = add(add(made, "thead"), "tr"), body = add(made, "tbody");
    heads.forEach((each) => add(head, "th", each));
    rows.forEach((row) => { const line = add(body, "tr"); row.forEach((cell) => cell instanceof Node ? add(line, "td").append(cell) : add(line, "td", cell)); });
  };
  // Shows the line that an error names, in the editor's text.
  const text = document.getElementById("text"), strip = document.querySelector(".editor .mark");
  let marked = -1;
  const follow = () => {
    if (marked < 0) { strip.hidden = true; return; }
    const style = getComputedStyle(text), high = parseFloat(style.lineHeight);
    strip.hidden = false;
    strip.style.height = `${high}px`;
    strip.style.top = `${parseFloat(style.paddingTop) + marked * high - text.scrollTop}px`;
  };
  const mark = (why, moves = true) => {
    const where = /line (\d+)/.exec(why), lines = text.value.split("\n");
    marked = where ? Math.min(Number(where[1]), lines.length) - 1 : -1;
    text.toggleAttribute("aria-invalid", Boolean(why));
    if (marked >= 0 && moves) {
      const start = lines.slice(0, marked).reduce((sum, line) => sum + line.length + 1, 0);
      text.focus();
      text.setSelectionRange(start, start + lines[marked].length);
      text.scrollTop = Math.max(0, marked - 8) * parseFloat(getComputedStyle(text).lineHeight);
    }
    follow();
  };
  text.addEventListener("scroll", follow);
  // A moment after the last key, the server checks the text and says what is wrong.
  const state = document.getElementById("checked");
  let timer = 0, latest = 0;
  const check = async () => {
    const mine = ++latest;
    const answer = await fetch("/api/v1/rules/check", {method: "POST", headers: {"Content-Type": "application/json"},
      body: JSON.stringify({text: text.value})}).catch(() => null);
    const checked = answer && answer.ok ? await answer.json().catch(() => null) : null;
    if (mine !== latest) return;  // outdated: more was typed since
    state.hidden = !checked;
    if (!checked) return;
    state.className = checked.error ? "alert" : "good";
    state.textContent = checked.error || [state.dataset.good, ...checked.notes].join(" ");
    mark(checked.error, false);
  };
  text.addEventListener("input", () => {
    marked = -1;
    latest += 1;
    follow();
    clearTimeout(timer);
    timer = setTimeout(check, 500);
  });
  const wrong = document.getElementById("wrong");
  if (wrong) mark(wrong.textContent);
  button.addEventListener("click", async () => {
    button.disabled = true;
    place.setAttribute("aria-busy", "true");
    const days = Number(document.getElementById("days").value) || 7;
    const answer = await fetch("/api/v1/rules/replay", {method: "POST", headers: {"Content-Type": "application/json"},
      body: JSON.stringify({text: document.getElementById("text").value, since_days: days})}).catch(() => null);
    const found = answer && await answer.json().catch(() => null);
    button.disabled = false;
    place.replaceChildren();
    place.setAttribute("aria-busy", "false");
    if (!answer || !answer.ok) {
      const why = found && typeof found.detail === "string" ? found.detail : "";
      const told = add(place, "p", `${words.failed}. ${why}`);
      told.className = "alert";
      mark(why);
      return;
    }
    add(place, "p", `${words.jobs}: ${found.judged}${found.more ? "+" : ""} · ${words.changed}: ${found.changed}`);
    const hours = (key) => found[key].map((each) => each.toFixed(1));
    table([words.rule, words.before, words.after], [
      ...Object.entries(found.findings).map(([name, counts]) => [name, ...counts]),
      [words.gpu, ...hours("freed_gpu_hours")], [words.core, ...hours("freed_core_hours")]]);
    if (!found.jobs.length) return;
    add(place, "p");
    table([words.job, words.user, words.before, words.after], found.jobs.map((each) => {
      const link = document.createElement("a");
      link.href = `/jobs/${each.job}`;
      link.textContent = each.job;
      return [link, each.user, [each.state[0], ...each.gone].join(", "), [each.state[1], ...each.new].join(", ")];
    }));
  });
});
