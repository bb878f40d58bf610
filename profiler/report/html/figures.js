// Figures as text: grouped, in the unit that fits.

// A thin space groups thousands and stands before a unit; at this one a line does not break.
const thin = '\u202f';

function grouped(number) {
  return String(Math.round(number)).replace(/\B(?=(\d{3})+(?!\d))/g, thin);
}

function threeDigits(value) {
  const size = Math.abs(value);
  return value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : 2);
}

function timeUnit(ns) {
  if (ns >= 1e9) return { unit: 's', factor: 1e9 };
  if (ns >= 1e6) return { unit: 'ms', factor: 1e6 };
  if (ns >= 1e3) return { unit: 'us', factor: 1e3 };
  return { unit: 'ns', factor: 1 };
}

function time(ns) {
  if (ns >= 60e9) {
    const seconds = Math.round(ns / 1e9);
    return `${Math.floor(seconds / 60)}${thin}min ${String(seconds % 60).padStart(2, '0')}${thin}s`;
  }
  const { unit, factor } = timeUnit(ns);
  return `${unit === 'ns' ? Math.round(ns) : threeDigits(ns / factor)}${thin}${unit}`;
}

function scaled(value, unit) {
  const prefixes = ['', 'k', 'M', 'G', 'T', 'P'];
  let power = 0;
  while (Math.abs(value) >= 1000 && power < prefixes.length - 1) {
    value /= 1000;
    power += 1;
  }
  const text = power === 0 ? String(Math.round(value)) : threeDigits(value);
  return `${text}${thin}${prefixes[power]}${unit}`;
}

const bytes = (count) => scaled(count, 'B');
const rate = (perSecond) => scaled(perSecond, 'B/s');
const perCent = (share) => `${(share * 100).toFixed(1)}${thin}%`;
const stepNumber = (id) => grouped(id + 1);

// Whole per cent that add to 100: the largest remainders are rounded up.
function wholePerCents(shares) {
  const whole = shares.map((share) => Math.floor(share * 100));
  const sum = shares.reduce((a, b) => a + b, 0);
  let left = Math.round(sum * 100) - whole.reduce((a, b) => a + b, 0);
  const order = shares.map((share, i) => [share * 100 - whole[i], i]).sort((a, b) => b[0] - a[0]);
  for (const [, i] of order) {
    if (left <= 0) break;
    whole[i] += 1;
    left -= 1;
  }
  return whole;
}
