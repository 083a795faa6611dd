//! The setting `plan_cache_mode`.

/// By which plans prepared statements run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanCacheMode {
    /// As costs say.
    Auto,
    /// By those for any values of their parameters.
    Generic,
    /// By one for the values of each execution.
    Custom,
}

impl PlanCacheMode {
    /// The mode of the setting's value.
    pub(super) fn of(value: &str) -> PlanCacheMode {
        match value {
            "force_generic_plan" => PlanCacheMode::Generic,
            "force_custom_plan" => PlanCacheMode::Custom,
            _ => PlanCacheMode::Auto,
        }
    }
}
