// Says the figures of a graph of the cluster's use where the pointer is. They are fetched when first needed.
"use strict";
(() => {
  const language = document.documentElement.lang;
  const percent = (value) => value === null || value === undefined ? "–" : `${(value * 100).toLocaleString(language, {maximumFractionDigits: 1})} %`;
  const count = (value) => value === null || value === undefined ? "–" : value.toLocaleString(language, {maximumFractionDigits: 0});
  const watts = (value) => value === null || value === undefined ? "–" : `${Math.round(value).toLocaleString(language)} ${language === "ru" ? "Вт" : "W"}`;
  const range = () => new URLSearchParams(location.search).get("range") || "day";
  let figures = null, fetched = 0;
  const known = () => {
    if (!figures || Date.now() - fetched > 60000) {
      fetched = Date.now();
      figures = fetch(`/api/v1/cluster/use?range=${range()}`).then((answer) => answer.ok ? answer.json() : null).catch(() => null);
    }
    return figures;
  };
  document.addEventListener("pointermove", async (event) => {
    const chart = event.target.closest?.(".charts svg");
    if (!chart) return;
    const area = chart.getBoundingClientRect(), share = (event.clientX - area.left) / area.width;
    const use = await known();
    if (!use || !chart.isConnected) return;
    const {curves} = "type" in chart.dataset ? use.types[chart.dataset.type] ?? {} : use.whole;
    if (!curves) return;
    const name = chart.dataset.curve;
    const power = {power: curves.watts, node_power: curves.node_watts}[name];
    const several = name === "waiting" ? use.waiting.jobs : power ?? curves[`${name}_used`];
    const place = Math.max(0, Math.min(several.length - 1, Math.floor(share * several.length)));
    const at = new Date((use.begin + place * use.step) * 1000).toISOString().slice(0, 16).replace("T", " ");
    const output = chart.parentElement.querySelector("output") ?? chart.parentElement.appendChild(document.createElement("output"));
    const figure = name === "waiting" ? count(several[place]) : power ? watts(several[place]) : `${percent(several[place])} / ${percent(curves[`${name}_allocated`][place])}`;
    output.textContent = `${at} UTC: ${figure}`;
  });
})();
