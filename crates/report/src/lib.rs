//! Judgement to reader: terminal, HTML, Markdown, CSV, JSON.
