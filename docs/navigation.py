"""The order of the site: the first page of each section, and the pages that follow it."""

SECTIONS = {
    "index": [
        "start",
        "tutorials/index",
        "How-to <how-to>",
        "Commands <commands/index>",
        "api/index",
        "background",
        "developers",
    ],
    "start": ["quickstart", "promise", "choosing", "certificate", "mapie", "compared", "faq", "glossary"],
    "tutorials/index": ["*"],
    "how-to": [
        *(
            "tables",
            "dependent-rows",
            "monitor",
            "online",
            "your-model",
            "network",
            "fleet",
            "pipelines",
            "why-wide",
            "own-method",
        ),
        "trust",
        "examples",
    ],
    "commands/index": [
        *("fit", "predict", "audit", "monitor", "explain", "plan", "report", "export", "demo", "reproduce", "*"),
    ],
    "api/index": [
        *("table", "network", "model", "bands", "intervals", "monitor", "online"),
        *("nn", "metrics", "planning", "mlflow", "images", "extend", "errors", "*"),
    ],
    "background": ["mathematics", "reproduction", "paper"],
    "developers": ["CONTRIBUTING", "CHANGELOG", "log", "benchmarks"],
    "benchmarks": [
        "Benchmark of sharpness <benchmarks/sharpness>",
        "Sharpness, the figures <benchmarks/results/sharpness/summary>",
        "Sharpness, what was run where <benchmarks/results/sharpness>",
        "Sharpness on other tables, the figures <benchmarks/results/others/summary>",
        "Sharpness on other tables, what was run where <benchmarks/results/others>",
        "Tables with long tails, the figures <benchmarks/results/long_tails>",
        "Groups, the figures <benchmarks/results/groups>",
        "The monitor, the figures <benchmarks/results/monitor>",
        "Online rules, the figures <benchmarks/results/online>",
        "Verdicts on real tables, the figures <benchmarks/results/real_tables/summary>",
        "Verdicts on real tables, what was run <benchmarks/results/real_tables>",
    ],
}
