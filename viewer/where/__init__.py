"""The Where view: question, verdict and evidence about one message."""
