# For `jupyter nbconvert` on the command line in the course's own environment, where `make` puts this file. It is not
# installed with the package: nbconvert reads no file of any other name, and one of this name could be another
# package's. JupyterLab's export needs no such file; posviz/server.py sees to it.
c = get_config()  # noqa: F821  (given by whoever reads this file)
c.HTMLExporter.preprocessors.append("posviz.export.alternative_text")
c.MarkdownExporter.preprocessors.append("posviz.export.alternative_text")
