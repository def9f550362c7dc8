"""HTML pages: templates, text and SVG pictures that all pages share."""
