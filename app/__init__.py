"""The page: what a visitor sees of ``elmo``. Reading order: cli, ui, tabs, handlers, services."""
