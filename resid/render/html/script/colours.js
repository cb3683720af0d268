// Colours of cells: one hue from pale to dark for amounts, two for differences. Both can be told
// apart by the colour-blind and in grey; in dark mode the ramp starts from the dark page instead.

const RAMPS = {
  light: ["#f7fbff", "#deebf7", "#c6dbef", "#9ecae1", "#6baed6", "#4292c6", "#2171b5", "#08519c", "#08306b"],
  dark: ["#161d26", "#172c46", "#1a4068", "#20578c", "#2e72b0", "#4f92cf", "#7fb4e4", "#aed3f4", "#dceefd"],
};
const DIFFERENCES = {
  light: ["#b35806", "#e08214", "#fdb863", "#fee0b6", "#f7f7f7", "#d1e5f0", "#92c5de", "#4393c3", "#2166ac"],
  dark: ["#fdb863", "#d9852a", "#9c5a16", "#56381c", "#1b2129", "#1d3a55", "#26608f", "#4393c3", "#92c5de"],
};

const darkMode = window.matchMedia("(prefers-color-scheme: dark)");

/** The colour at a place from 0 to 1 along a ramp, as [red, green, blue]. */
function colourAt(ramp, place) {
  const stops = ramp[darkMode.matches ? "dark" : "light"];
  const at = Math.min(1, Math.max(0, place)) * (stops.length - 1);
  const low = Math.min(stops.length - 2, Math.floor(at));
  const [from, to] = [stops[low], stops[low + 1]].map(channels);
  return from.map((value, i) => Math.round(value + (to[i] - value) * (at - low)));
}

function channels(hex) {
  return [1, 3, 5].map((start) => parseInt(hex.slice(start, start + 2), 16));
}

/** Black or white, whichever has more contrast with the colour (W3C relative luminance). */
function inkOn(colour) {
  const [red, green, blue] = colour.map((value) => {
    const c = value / 255;
    return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? "#000000" : "#ffffff";
}

function paint(element, ramp, place) {
  if (place === null) {
    element.style.removeProperty("background-color");
    element.style.removeProperty("color");
    return;
  }
  const colour = colourAt(ramp, place);
  element.style.backgroundColor = `rgb(${colour.join(",")})`;
  element.style.color = inkOn(colour);
}

function gradient(ramp) {
  const stops = ramp[darkMode.matches ? "dark" : "light"];
  return `linear-gradient(to right, ${stops.join(", ")})`;
}
