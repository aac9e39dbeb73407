"""What the pages under docs/ say of the runs that they are made from."""

import datetime
import html
import json
import math
import pathlib
import re
import shlex
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent
IMAGES = TOP / "docs" / "images"


def read(directory):
    """The record of a run."""
    return json.loads((pathlib.Path(directory) / "run.json").read_text())


def newest(name):
    """The directory of the last run of an experiment of this name."""
    return max((TOP / "runs").glob(f"*-{name}"))


def machine(record):
    """The machine that it ran on, in one sentence."""
    seen = record["fingerprint"]
    versions = seen["versions"]
    memory = seen["memory_bytes"] / 2**30
    hypervisor = seen.get("hypervisor")
    under = "" if not hypervisor else " of a virtual machine" if hypervisor == "unknown" else f" under {hypervisor}"
    cluster = ""
    if "kubernetes" in versions:
        cluster = f", Kubernetes {versions['kubernetes']}, {versions['client node runtime']}"
    return f"{seen['cpus']} CPUs ({seen['cpu_model']}){under}, {memory:.0f} GiB, Linux {seen['kernel']}{cluster}"


def minutes(directory):
    """From the start of the run to its last trial."""
    lines = (pathlib.Path(directory) / "trials.jsonl").read_text().splitlines()
    moment = lambda text: datetime.datetime.fromisoformat(text[:19])
    first, last = read(directory)["provenance"]["started"], json.loads(lines[-1])["started"]
    return math.ceil((moment(last) - moment(first)).total_seconds() / 60)


def file(path):
    """A file of this repository from its top; the name alone of any other."""
    own = pathlib.Path(*pathlib.Path(path).parts[-2:])
    return str(own) if (TOP / own).is_file() else own.name


def command(record):
    """The command that made the run from the top of this repository."""
    words = ["plumbline", *record["provenance"]["command"][1:]]
    if "--out" in words:
        at = words.index("--out")
        del words[at : at + 2]
    words = [file(word) if word.endswith(".toml") else word for word in words]
    return shlex.join(words).replace(f"{TOP}/", "")


def report(program, directory, form):
    """The report of a run."""
    made = [program, "report", "--format", form, directory]
    return subprocess.run(made, stdout=subprocess.PIPE, text=True, check=True).stdout


def source(directory):
    """Where a run is from: command, machine and date, and an experiment that is not ready-made."""
    record = read(directory)
    is_own = any(word.endswith(".toml") for word in record["provenance"]["command"])
    text = f"\n```toml\n{record['experiment_text'].strip()}\n```\n" if is_own else ""
    took = minutes(directory)
    return f"""On {record['provenance']['started'][:10]} with Plumbline {record['provenance']['version']}, in
{took} minute{'s' * (took > 1)}, on {machine(record)}:

```
{command(record)}
```
{text}"""


def table(head, rows):
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def slug(words):
    """Words as a part of a file's name."""
    return re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")


def pictures(page, caption, name):
    """The charts of a page whose captions have these words, one for each workload, as files; their Markdown."""
    head, *chapters = page.split('<section class="chapter">')
    title = lambda chapter: html.unescape(re.search(r"<h2>(.*?)</h2>", chapter).group(1))
    charts = [(title(one), head + one) for one in chapters if f"{caption}.</b>" in one]
    if len(charts) < 2:
        return picture(page, caption, name)
    return "\n\n".join(f"`{title}`:\n\n{picture(one, caption, f'{name}-{slug(title)}')}" for title, one in charts)


def picture(page, caption, name):
    """The first chart of a page whose caption has these words, as a file; its Markdown."""
    found = re.search(rf"<b>([^<]*{re.escape(caption)})\.</b>.*?(<svg .*?</svg>)", page, re.DOTALL)
    if not found:
        sys.exit(f"the page has no chart of{caption}")
    title, drawing = found.groups()
    style = re.search(r"<style>(.*?)</style>", page, re.DOTALL).group(1)
    head = '<svg xmlns="http://www.w3.org/2000/svg" width="860" '
    drawing = drawing.replace("<svg ", head, 1).replace(">", f"><style>{style}</style>", 1)
    (IMAGES / f"{name}.svg").write_text(drawing)
    return f"![{title}](images/{name}.svg)"
