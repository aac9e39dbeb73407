//! What flags change in an experiment. All go one way: as `key=value`.
//!
//! A flag outranks the file, so it also removes what contradicts it there:
//! `--duration` the lengths of single workloads, `--rate` a closed loop. What
//! two flags say is never settled in silence; reading the tree refuses it.

mod assignment;
mod flag;
mod flagged_scene;
mod selection;
mod tables;

use crate::key::WORKLOAD_FACTORS;
use crate::keys::{DESIGN, DURING, LIMIT, LINK, TIMING, assignable, factors};
use crate::nearest::nearest;
use crate::section::FileSection;
use crate::tree::{Data, Entry, SectionTable, SpannedValue};
use crate::{Experiment, SpecError, Tuning, load, metric};
use assignment::Assignment;
pub use flag::Flag;
pub use flagged_scene::{flagged_scene, flagged_scene_like};
use tables::{remove_from_file, workloads};

impl Experiment {
    /// Applies `--set key=value`, such as `workload.rate=1000`,
    /// `workload.rr.connections=4`, `factors.family=4,6` or `design.blocks=20`.
    ///
    /// `workload.KEY` concerns every workload that has such a key,
    /// `workload.NAME.KEY` the one of that name. A list makes the key a factor.
    ///
    /// # Errors
    ///
    /// Text without `=`, keys that do not exist, keys that no workload of this
    /// experiment has. Values are checked by [`check`](Self::check) and
    /// [`resolve`](Self::resolve), when all flags are known.
    pub fn set(&mut self, assignment: &str) -> Result<(), SpecError> {
        self.apply(&Assignment::from_set(assignment)?)
    }

    /// Sets limits in place of all that the file has.
    ///
    /// # Errors
    ///
    /// As [`set`](Self::set).
    pub fn limit_to(&mut self, limits: &[(String, f64)]) -> Result<(), SpecError> {
        self.root.remove("limits");
        limits.iter().try_for_each(|(metric, share)| {
            // Without what doubles lack: 7 %, and not 7.000000000000001 %.
            let percent = (share * 1e12).round() / 1e10;
            self.set(&format!("limits.{metric}={percent}%"))
        })
    }

    /// Applies the flag of this name, such as `rate`: one of [`Flag::all`].
    ///
    /// # Errors
    ///
    /// As [`set`](Self::set).
    pub fn set_flag(&mut self, name: &str, value: &str) -> Result<(), SpecError> {
        let flag = Flag::all().find(|flag| flag.name == name);
        let key = flag.map_or_else(|| name.to_owned(), |flag| flag.key());
        self.apply(&Assignment::from_flag(&format!("--{name}"), &key, value)?)
    }

    fn apply(&mut self, assignment: &Assignment) -> Result<(), SpecError> {
        let path: Vec<&str> = assignment.path.iter().map(String::as_str).collect();
        match path.as_slice() {
            ["workload"] => selection::choose(&mut self.root, assignment),
            [key @ ("name" | "question" | "baseline")] => {
                self.root.insert((*key).to_owned(), assignment.entry());
                Ok(())
            }
            ["factors", key] if factors().contains(key) => self.set_factor(key, assignment),
            ["design", key] if DESIGN.contains(key) => self.set_design(key, assignment),
            [section @ "limits", key] if metric::names().contains(key) => {
                self.put(section, key, assignment)
            }
            [section @ "link", key] if LINK.contains(key) => self.put(section, key, assignment),
            ["network", name, key] if Tuning::KEYS.contains(key) => {
                self.set_variant(name, key, assignment)
            }
            ["workload", key] if is_workload_key(key) => {
                if matches!(assignment.value.data, Data::List(_)) && WORKLOAD_FACTORS.contains(key)
                {
                    self.set_factor(key, assignment)
                } else {
                    self.set_workloads(None, key, assignment)
                }
            }
            ["workload", name, key] if is_workload_key(key) => {
                self.set_workloads(Some(name), key, assignment)
            }
            _ => Err(unknown(assignment)),
        }
    }

    fn set_factor(&mut self, key: &str, assignment: &Assignment) -> Result<(), SpecError> {
        for table in workloads(&mut self.root) {
            table.remove(key);
            overrule(table, key, &assignment.value);
        }
        self.put("factors", key, assignment)
    }

    fn set_design(&mut self, key: &str, assignment: &Assignment) -> Result<(), SpecError> {
        if TIMING.contains(&key) {
            for table in workloads(&mut self.root) {
                remove_from_file(table, key);
            }
        }
        self.put("design", key, assignment)
    }

    fn set_workloads(
        &mut self,
        name: Option<&str>,
        key: &str,
        assignment: &Assignment,
    ) -> Result<(), SpecError> {
        let mut found = false;
        for table in workloads(&mut self.root) {
            let section = FileSection {
                title: "a workload",
                table,
            };
            let kind = load::kind(&section)?;
            let wanted = match name {
                None => kind.varies(key),
                Some(name) => selection::is_called(table, name),
            };
            if !wanted {
                continue;
            }
            found = true;
            table.insert(key.to_owned(), assignment.entry());
            overrule(table, key, &assignment.value);
        }
        if !found {
            return Err(concerns_nothing(name, key, assignment));
        }
        if name.is_none()
            && let Some(Data::Table(factors)) =
                self.root.get_mut("factors").map(|e| &mut e.value.data)
        {
            // The last setting of a key counts.
            factors.remove(key);
            overrule(factors, key, &assignment.value);
        }
        Ok(())
    }

    /// A setting of a variant that the file has.
    fn set_variant(
        &mut self,
        name: &str,
        key: &str,
        assignment: &Assignment,
    ) -> Result<(), SpecError> {
        let section = self.root.get_mut("network").and_then(|entry| entry.table());
        let variant = section.and_then(|all| all.get_mut(name)?.table());
        let Some(table) = variant else {
            return Err(SpecError::at(
                &assignment.key,
                format!("this experiment has no section [network.{name}]"),
                "set a key of one that it has, or add the section to the file",
            ));
        };
        table.insert(key.to_owned(), assignment.entry());
        Ok(())
    }

    /// Puts a value into a section, which is made when the file has none.
    fn put(&mut self, section: &str, key: &str, assignment: &Assignment) -> Result<(), SpecError> {
        let entry = self
            .root
            .entry(section.to_owned())
            .or_insert_with(|| Entry {
                key: assignment.key.clone(),
                value: SpannedValue {
                    place: assignment.key.clone(),
                    data: Data::Table(SectionTable::new()),
                },
            });
        // Parsing refused sections that are no tables.
        if let Data::Table(table) = &mut entry.value.data {
            table.insert(key.to_owned(), assignment.entry());
        }
        Ok(())
    }
}

fn is_workload_key(key: &str) -> bool {
    [LIMIT, DURING].contains(&key) || WORKLOAD_FACTORS.contains(&key) || TIMING.contains(&key)
}

/// Removes what contradicts a new value: of the rate, of the share of the maximum,
/// or of the arrivals, where that is a closed loop.
fn overrule(table: &mut SectionTable, key: &str, value: &SpannedValue) {
    match key {
        "arrival" if is_closed(value) => {
            remove_from_file(table, "rate");
            remove_from_file(table, "load");
        }
        "rate" => {
            remove_closed(table);
            remove_from_file(table, "load");
            remove_from_file(table, LIMIT);
        }
        "load" => {
            remove_closed(table);
            remove_from_file(table, "rate");
        }
        _ => {}
    }
}

/// A rate that a flag gives ends the closed loop that a file asks for.
fn remove_closed(table: &mut SectionTable) {
    if table.get("arrival").is_some_and(|it| is_closed(&it.value)) {
        remove_from_file(table, "arrival");
    }
}

fn is_closed(arrival: &SpannedValue) -> bool {
    matches!(&arrival.data, Data::Text(word) if word == "closed")
}

fn unknown(assignment: &Assignment) -> SpecError {
    let written = assignment.path.join(".");
    let known = assignable();
    // People leave the section out: `rate=1000`.
    let within_section = known
        .iter()
        .find(|key| key.split_once('.').is_some_and(|(_, key)| key == written));
    let near = within_section
        .map(String::as_str)
        .or_else(|| nearest(&written, known.iter().map(String::as_str)));
    let remedy = match near {
        Some(near) => format!("did you mean `{near}`?"),
        None => "keys are written as section.key, such as workload.rate, factors.family, \
                 design.blocks or limits.p50"
            .to_owned(),
    };
    SpecError::at(
        &assignment.key,
        format!("`{written}` is not a key of an experiment"),
        remedy,
    )
}

fn concerns_nothing(name: Option<&str>, key: &str, assignment: &Assignment) -> SpecError {
    match name {
        Some(name) => SpecError::at(
            &assignment.key,
            format!("no workload of this experiment is named `{name}`"),
            "use the `name` of a [[workload]] section, or its kind where it has no name",
        ),
        None => SpecError::at(
            &assignment.key,
            format!("no workload of this experiment has a `{key}`"),
            "leave it out, or choose another workload with --workload",
        ),
    }
}
