"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  document.body.append(tip);

  const raised = (n) => String(n).replace(/[-0-9]/g, (c) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(c)]);
  const shown = (v, kind) => {
    if (v < 0) return "−" + shown(-v, kind);
    if (kind === "percent") return (100 * v).toFixed(2) + " %";
    if (v && (v < 1e-3 || v >= 1e7)) {
      const [digits, power] = v.toExponential(2).split("e");
      return `${Number(digits)}·10${raised(Number(power))}`;
    }
    return v >= 1000 ? Math.round(v).toLocaleString("en") : String(Number(v.toPrecision(4)));
  };
  const where = (chart, x) =>
    chart.label === "step" ? `step ${shown(x)}`
    : chart.label === "epoch" ? `step ${shown(x)} · epoch ${shown(x / chart.unit)}`
    : `${chart.label} ${shown(x)}`;

  const place = (value, [low, high], log, one) =>
    one ? Math.log((1 - low) / (1 - Math.min(value, high))) / Math.log((1 - low) / (1 - high))
    : log ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);

  const say = (event, title, rows) => {
    const heading = document.createElement("p");
    heading.textContent = title;
    tip.replaceChildren(heading, ...rows.map(([colour, name, value]) => {
      const row = document.createElement("div"), chip = document.createElement("i"), number = document.createElement("b");
      chip.style.background = colour;
      number.textContent = value;
      row.append(...(colour ? [chip] : []), name, number);
      return row;
    }));
    tip.hidden = false;
    const { width, height } = tip.getBoundingClientRect();
    const right = event.clientX + 18 + width < innerWidth;
    tip.style.left = Math.max(6, right ? event.clientX + 18 : event.clientX - 18 - width) + "px";
    tip.style.top = Math.max(6, Math.min(event.clientY - height / 2, innerHeight - height - 6)) + "px";
  };

  // The last of the sorted points whose x is nearest to the one asked for.
  const nearest = (points, x) => {
    let low = 0, high = points.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (points[middle][0] < x) low = middle + 1; else high = middle;
    }
    return low && x - points[low - 1][0] < points[low][0] - x ? points[low - 1] : points[low];
  };

  for (const plot of document.querySelectorAll(".plot[data-chart]")) {
    const chart = data[plot.dataset.chart];
    const known = chart.series
      .map((s) => ({ ...s, points: s.points.filter((p) => p[1] !== null).sort((a, b) => a[0] - b[0]) }))
      .filter((s) => s.points.length);
    let extras = [];
    const clear = () => {
      extras.forEach((e) => e.remove());
      extras = [];
      tip.hidden = true;
    };
    const add = (className, style) => {
      const element = document.createElement("div");
      element.className = className;
      Object.assign(element.style, style);
      plot.append(element);
      extras.push(element);
    };
    plot.addEventListener("pointerleave", clear);
    plot.addEventListener("pointermove", (event) => {
      const box = plot.getBoundingClientRect();
      const part = Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
      const asked = chart.x[0] + part * (chart.x[1] - chart.x[0]);
      const found = known.map((s) => ({ ...s, point: nearest(s.points, asked) }));
      const x = found.map((s) => s.point[0]).reduce((a, b) => (Math.abs(a - asked) <= Math.abs(b - asked) ? a : b));
      clear();
      add("cross", { left: 100 * place(x, chart.x, false) + "%" });
      const near = found.filter((s) => Math.abs(s.point[0] - x) <= 0.03 * (chart.x[1] - chart.x[0]));
      for (const s of near) {
        add("spot", {
          left: 100 * place(s.point[0], chart.x, false) + "%",
          bottom: 100 * place(s.point[1], chart.y, chart.log, chart.one) + "%",
          marginBottom: "-4.5px",
          background: s.colour,
        });
      }
      say(event, where(chart, x), near.map((s) => [s.colour, s.name, shown(s.point[1], chart.kind)]));
    });
  }

  for (const plot of document.querySelectorAll(".plot[data-heat]")) {
    const heat = data[plot.dataset.heat];
    plot.addEventListener("pointerleave", () => (tip.hidden = true));
    plot.addEventListener("pointermove", (event) => {
      const box = plot.getBoundingClientRect();
      const at = (part, count) => Math.min(count - 1, Math.max(0, Math.floor(part * count)));
      const row = at((event.clientY - box.top) / box.height, heat.rows.length);
      const column = at((event.clientX - box.left) / box.width, heat.steps.length);
      const value = heat.values[row][column];
      say(event, where(heat, heat.steps[column]), [["", heat.rows[row], value === null ? "–" : shown(value)]]);
    });
  }
})();
