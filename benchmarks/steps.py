"""A step chart of values over time, as SVG."""

from collections.abc import Iterable

#: (seconds, the value from then on)
Points = list[tuple[float, int]]


def summed(start: int, steps: Iterable[tuple[float, int]]) -> Points:
    """Return the values over time, as the sums of changes."""
    points = [(0.0, start)]
    for at, step in sorted(steps):
        points.append((max(0.0, at), points[-1][1] + step))
    return points


def svg(series: dict[str, Points]) -> str:
    """Return a step chart. The first series has a scale of its own: a queue is longer than a cluster is large."""
    width, height, left, top = 720, 300, 50, 60
    colours = ["#999999", "#e08214", "#2166ac", "#1b7837"]
    end = max(at for points in series.values() for at, _ in points) * 1.02
    names = list(series)
    most = {name: max(v for n in ([name] if name == names[0] else names[1:]) for _, v in series[n]) for name in names}
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width + 110} {height + 110}" font-family="sans-serif" '
        'font-size="13">',
        f'<rect width="{width + 110}" height="{height + 110}" fill="white"/>',
        f'<path d="M{left} {top}V{top + height}H{left + width}V{top}" fill="none" stroke="black"/>',
    ]
    for second in range(0, int(end) + 1, 10):
        x = left + width * second / end
        parts.append(f'<text x="{x:.0f}" y="{top + height + 18}" text-anchor="middle">{second} s</text>')
    for name, x, anchor in ((names[0], left + width + 8, "start"), (names[-1], left - 8, "end")):
        for value in range(0, most[name] + 1, max(1, most[name] // 8)):
            y = top + height * (1 - value / most[name])
            parts.append(f'<text x="{x}" y="{y + 4:.0f}" text-anchor="{anchor}">{value}</text>')
    for number, (name, points) in enumerate(series.items()):
        path = ""
        for at, value in [*points, (end / 1.02, points[-1][1])]:
            x, y = left + width * at / end, top + height * (1 - value / most[name])
            path += f"M{x:.1f} {y:.1f}" if not path else f"H{x:.1f}V{y:.1f}"
        colour = colours[number]
        label = f"{name} (right)" if number == 0 else name
        parts.append(f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="2.5"/>')
        parts.append(f'<text x="{left + 10 + number * 180}" y="30" fill="{colour}">{label}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"
