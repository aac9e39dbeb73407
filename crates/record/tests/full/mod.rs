//! Records in which every field of a schema is there.

use std::cell::RefCell;
use std::collections::BTreeSet;

use plumbline_record::Histogram;
use serde_json::{Map, Value, json};

/// What every planted string begins with.
pub(crate) const MARK: &str = "zqx";

/// Makes records after a schema, with a mark of its own in each string that is free.
pub(crate) struct Maker {
    root: Value,
    /// Fields by the number of their mark: the type and the key.
    fields: RefCell<Vec<String>>,
}

impl Maker {
    pub(crate) fn of<T: schemars::JsonSchema>() -> Self {
        Self {
            root: schemars::schema_for!(T).to_value(),
            fields: RefCell::default(),
        }
    }

    /// As many records as it takes for each alternative to be in one of them.
    pub(crate) fn records(&self, name: &str) -> Vec<Value> {
        self.all(&self.root, name, &[])
    }

    /// The fields whose marks are in a text.
    pub(crate) fn marked(&self, text: &str) -> BTreeSet<String> {
        let fields = self.fields.borrow();
        let marks = text.split(MARK).skip(1).map(|after| {
            let end = after.find(|it: char| !it.is_ascii_digit());
            let number: usize = after[..end.unwrap_or(after.len())].parse().unwrap();
            fields[number].clone()
        });
        marks.collect()
    }

    /// All fields that were marked.
    pub(crate) fn fields(&self) -> usize {
        self.fields.borrow().len()
    }

    fn plant(&self, field: &str) -> Value {
        let mut fields = self.fields.borrow_mut();
        fields.push(field.to_owned());
        format!("{MARK}{}", fields.len() - 1).into()
    }

    /// `within` are the types around it: one that holds itself ends at the second.
    fn all(&self, schema: &Value, field: &str, within: &[&str]) -> Vec<Value> {
        let mut parts: Vec<Vec<Value>> = Vec::new();
        if let Some(reference) = schema["$ref"].as_str() {
            let name = reference.rsplit('/').next().unwrap();
            if name == "Histogram" {
                return vec![serde_json::to_value(Histogram::new()).unwrap()];
            }
            let within: Vec<&str> = within.iter().copied().chain([name]).collect();
            if within.iter().filter(|it| **it == name).count() > 2 {
                return Vec::new();
            }
            parts.push(self.all(&self.root["$defs"][name], name, &within));
        }
        for key in ["oneOf", "anyOf"] {
            if let Some(alternatives) = schema[key].as_array() {
                let some = alternatives.iter().filter(|it| it["type"] != "null");
                let some: Vec<Value> = some.flat_map(|it| self.all(it, field, within)).collect();
                let is_word = some.iter().all(Value::is_string);
                parts.push(
                    some.into_iter()
                        .take(if is_word { 1 } else { usize::MAX })
                        .collect(),
                );
            }
        }
        parts.extend(self.own(schema, field, within));
        together(parts)
    }

    /// What a schema says itself.
    fn own(&self, schema: &Value, field: &str, within: &[&str]) -> Option<Vec<Value>> {
        if let Some(only) = schema.get("const") {
            return Some(vec![only.clone()]);
        }
        if let Some(words) = schema["enum"].as_array() {
            return Some(vec![words[0].clone()]);
        }
        let kind = schema["type"]
            .as_array()
            .map_or(&schema["type"], |it| &it[0]);
        Some(match kind.as_str()? {
            "string" if field == "Limit" => vec!["p99<1ms".into()],
            "string" => vec![self.plant(field)],
            // A number that every field takes.
            "integer" | "number" => vec![4.into()],
            "boolean" => vec![true.into()],
            "array" => {
                let item = format!("{field}[]");
                let fixed = schema["prefixItems"].as_array().into_iter().flatten();
                let items = fixed.chain(schema.get("items").filter(|it| it.is_object()));
                vec![items.flat_map(|it| self.all(it, &item, within)).collect()]
            }
            "object" => self.objects(schema, field, within),
            other => panic!("{field} is of the type {other}"),
        })
    }

    fn objects(&self, schema: &Value, field: &str, within: &[&str]) -> Vec<Value> {
        let mut parts = vec![vec![json!({})]];
        for (key, inner) in schema["properties"].as_object().into_iter().flatten() {
            let values = self.all(inner, &format!("{field}.{key}"), within);
            let alone = values.into_iter().map(|value| json!({ key: value }));
            parts.push(alone.collect());
        }
        if let Some(inner) = schema
            .get("additionalProperties")
            .filter(|it| it.is_object())
        {
            let mut map = Map::new();
            for value in self.all(inner, &format!("{field}.*"), within) {
                let key = self.plant(&format!("{field}.{{key}}"));
                map.insert(key.as_str().unwrap().to_owned(), value);
            }
            parts.push(vec![map.into()]);
        }
        together(parts)
    }
}

/// The first alternatives of all parts in one value, and each other alternative with the
/// first ones of the other parts.
fn together(mut parts: Vec<Vec<Value>>) -> Vec<Value> {
    parts.retain(|part| !part.is_empty());
    if parts.len() == 1 {
        return parts.remove(0);
    }
    let mut all = Vec::new();
    for (at, part) in parts.iter().enumerate() {
        for (number, value) in part.iter().enumerate() {
            if number == 0 && at > 0 {
                continue;
            }
            let mut whole = Map::new();
            for (other, rest) in parts.iter().enumerate() {
                let value = if other == at { value } else { &rest[0] };
                whole.extend(value.as_object().expect("only objects are joined").clone());
            }
            all.push(whole.into());
        }
    }
    all
}
