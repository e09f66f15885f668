//! The gated trainer: rollout → reflect → aggregate → select → update → gate.
