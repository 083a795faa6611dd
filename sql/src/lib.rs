//! The SQL language: syntax, types, planner, executor and system views.
