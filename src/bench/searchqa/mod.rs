//! SearchQA: short answers to trivia questions, from passages that a search engine found.

pub mod score;
