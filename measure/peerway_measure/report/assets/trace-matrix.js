// Shows another measure in the communication matrix, from #matrices (JSON): of each cell its text and its share of the largest.
"use strict";
(() => {
  const measures = JSON.parse(document.getElementById("matrices").textContent);
  const choice = document.getElementById("matrix-measure");
  const rows = [...document.querySelectorAll("#matrix tbody tr")].map((row) => [...row.querySelectorAll("td")]);
  choice.addEventListener("change", () => measures[Number(choice.value)].forEach((row, from) => row.forEach(([text, share], to) => {
    const cell = rows[from][to];
    cell.textContent = text;
    cell.className = share > 60 ? "deep" : "light";
    cell.style.setProperty("--share", `${share}%`);
  })));
})();
