//! An image of one layer that holds one program, made without any tool.
//!
//! The file is an archive that both ways of loading images take: an OCI image
//! layout (image-spec 1.1: `oci-layout`, `index.json`, `blobs/`) with, beside
//! it, the `manifest.json` by which `docker load` and `kind load` find names.
//! The same program gives the same bytes.

use std::io::{self, Read, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use plumbline_build::{LinuxProgram, NoLinuxProgram};
use plumbline_experiment::{HttpServer, Treatment};
use plumbline_harness::TargetError;
use serde_json::{Value, json};

use crate::manifest::PROGRAM;

/// Why no image could be made.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// Not a program for Linux that an image can be made of.
    #[error("{0}; name a static one with --program")]
    Program(#[from] NoLinuxProgram),
    /// The program needs libraries, which an image of nothing else lacks.
    #[error(
        "the program asks for {interpreter} and so for libraries that the image would not have; \
         take the static one of a release, or build it with `cargo build --profile dist --target \
         x86_64-unknown-linux-musl`, and name it with --program"
    )]
    Dynamic {
        /// The loader that it asks for.
        interpreter: String,
    },
    /// The archive could not be written.
    #[error("the image could not be written: {0}")]
    Write(#[from] io::Error),
}

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenImage {
    /// Reference under which the image is known once it is loaded.
    pub reference: String,
    /// `amd64` or `arm64`.
    pub architecture: &'static str,
    /// Digest of the manifest, `sha256:…`.
    pub digest: String,
}

/// The reference of the image of a program built from these sources, which is loaded into
/// nodes and pulled from nowhere. An image of another build is not taken for it.
pub fn local_reference() -> String {
    let version = env!("CARGO_PKG_VERSION");
    format!("localhost/plumbline:{version}-{}", plumbline_build::SOURCES)
}

/// Writes an image of `program` that is known as `reference`.
///
/// # Errors
///
/// A program that is not static or not for Linux, or an archive that cannot
/// be written.
pub fn write(
    program: &mut impl Read,
    reference: &str,
    archive: &mut impl Write,
) -> Result<WrittenImage, ImageError> {
    let mut bytes = Vec::new();
    program.read_to_end(&mut bytes)?;
    let LinuxProgram {
        architecture,
        interpreter,
    } = LinuxProgram::read(&bytes)?;
    if let Some(interpreter) = interpreter {
        return Err(ImageError::Dynamic { interpreter });
    }
    let architecture = architecture.in_images();
    let layer = layer(&bytes)?;
    let packed = pack(&layer)?;
    let config = to_bytes(&json!({
        "architecture": architecture,
        "os": "linux",
        "config": { "Entrypoint": [PROGRAM], "User": "65532:65532" },
        "rootfs": { "type": "layers", "diff_ids": [digest(&layer)] },
        "history": [{ "created_by": "plumbline image" }],
    }));
    let descriptor = |media_type: &str, blob: &[u8]| {
        json!({
            "mediaType": format!("application/vnd.oci.image.{media_type}"),
            "digest": digest(blob),
            "size": blob.len(),
        })
    };
    let manifest = to_bytes(&json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": descriptor("config.v1+json", &config),
        "layers": [descriptor("layer.v1.tar+gzip", &packed)],
    }));
    let mut entry = descriptor("manifest.v1+json", &manifest);
    entry["platform"] = json!({ "architecture": architecture, "os": "linux" });
    entry["annotations"] = json!({
        "io.containerd.image.name": reference,
        "org.opencontainers.image.ref.name": reference,
    });
    let index = to_bytes(&json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [entry],
    }));
    let docker = to_bytes(&json!([{
        "Config": blob_path(&config),
        "RepoTags": [reference],
        "Layers": [blob_path(&packed)],
    }]));

    let mut out = tar::Builder::new(archive);
    let layout = to_bytes(&json!({ "imageLayoutVersion": "1.0.0" }));
    add(&mut out, "oci-layout", 0o644, &layout)?;
    add(&mut out, "index.json", 0o644, &index)?;
    add(&mut out, "manifest.json", 0o644, &docker)?;
    for blob in [&manifest, &config, &packed] {
        add(&mut out, &blob_path(blob), 0o644, blob)?;
    }
    out.into_inner()?.flush()?;
    Ok(WrittenImage {
        reference: reference.to_owned(),
        architecture,
        digest: digest(&manifest),
    })
}

/// Refuses a server that the image does not hold.
///
/// # Errors
///
/// [`TargetError::Unsupported`], for anything but the program itself.
pub(crate) fn check_servers(treatments: &[Treatment]) -> Result<(), TargetError> {
    let is_nginx = |it: &Treatment| it.task.server() == HttpServer::Nginx;
    if !treatments.iter().any(is_nginx) {
        return Ok(());
    }
    Err(TargetError::Unsupported {
        what: "`server = \"nginx\"`".to_owned(),
        needs:
            "pods that have nginx, but their image holds Plumbline only: let Plumbline answer with \
                --set workload.server=plumbline"
                .to_owned(),
    })
}

fn layer(program: &[u8]) -> io::Result<Vec<u8>> {
    let mut layer = tar::Builder::new(Vec::new());
    add(&mut layer, PROGRAM.trim_start_matches('/'), 0o755, program)?;
    layer.into_inner()
}

fn pack(layer: &[u8]) -> io::Result<Vec<u8>> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    packed.write_all(layer)?;
    packed.finish()
}

/// Adds a file that belongs to root and has no time.
fn add(
    archive: &mut tar::Builder<impl Write>,
    path: &str,
    mode: u32,
    bytes: &[u8],
) -> io::Result<()> {
    let mut header = tar::Header::new_ustar();
    header.set_size(bytes.len() as u64);
    header.set_mode(mode);
    header.set_mtime(0);
    archive.append_data(&mut header, path, bytes)
}

fn to_bytes(value: &Value) -> Vec<u8> {
    value.to_string().into_bytes()
}

fn hex(blob: &[u8]) -> String {
    plumbline_build::sha256(blob).expect("memory can be read")
}

fn digest(blob: &[u8]) -> String {
    format!("sha256:{}", hex(blob))
}

fn blob_path(blob: &[u8]) -> String {
    format!("blobs/sha256/{}", hex(blob))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// An ELF header with at most one program header.
    fn elf(machine: u16, interpreter: Option<&str>) -> Vec<u8> {
        let mut bytes = vec![0; 64];
        bytes[..7].copy_from_slice(&[0x7f, b'E', b'L', b'F', 2, 1, 1]);
        bytes[18..20].copy_from_slice(&machine.to_le_bytes());
        bytes[32] = 64;
        bytes[54] = 56;
        if let Some(name) = interpreter {
            bytes[56] = 1;
            let mut header = vec![0; 56];
            header[0] = 3;
            header[8] = 120;
            header[32] = name.len() as u8;
            bytes.extend(header);
            bytes.extend(name.as_bytes());
        }
        bytes
    }

    fn files(archive: &[u8]) -> BTreeMap<String, Vec<u8>> {
        let mut archive = tar::Archive::new(archive);
        let entries = archive.entries().unwrap();
        let read = entries.map(|entry| {
            let mut entry = entry.unwrap();
            let path = entry.path().unwrap().to_string_lossy().into_owned();
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).unwrap();
            (path, bytes)
        });
        read.collect()
    }

    #[test]
    fn the_archive_leads_from_its_index_to_the_program() {
        let program = elf(62, None);
        let mut archive = Vec::new();
        let written = write(&mut program.as_slice(), "localhost/p:1", &mut archive).unwrap();
        let files = files(&archive);
        let json = |path: &str| -> Value { serde_json::from_slice(&files[path]).unwrap() };
        let blob = |descriptor: &Value| {
            let digest = descriptor["digest"].as_str().unwrap();
            let path = format!("blobs/{}", digest.replace(':', "/"));
            assert_eq!(descriptor["size"], files[&path].len(), "{path}");
            assert_eq!(super::digest(&files[&path]), digest);
            path
        };
        let entry = json("index.json")["manifests"][0].clone();
        assert_eq!(
            entry["annotations"]["io.containerd.image.name"],
            "localhost/p:1"
        );
        assert_eq!(entry["digest"], written.digest.as_str());
        let manifest = json(&blob(&entry));
        let config = json(&blob(&manifest["config"]));
        assert_eq!(config["architecture"], "amd64");
        let packed = &files[&blob(&manifest["layers"][0])];
        let mut layer = Vec::new();
        flate2::read::GzDecoder::new(packed.as_slice())
            .read_to_end(&mut layer)
            .unwrap();
        assert_eq!(
            config["rootfs"]["diff_ids"][0],
            super::digest(&layer).as_str()
        );
        assert_eq!(super::tests::files(&layer)["plumbline"], program);
        let docker = json("manifest.json");
        assert_eq!(docker[0]["RepoTags"][0], "localhost/p:1");
        assert!(files.contains_key(docker[0]["Layers"][0].as_str().unwrap()));
    }

    /// A node keeps what it once got under a reference.
    #[test]
    fn another_build_has_another_reference() {
        let reference = local_reference();
        let tag = reference.strip_prefix("localhost/plumbline:").unwrap();
        assert!(tag.ends_with(plumbline_build::SOURCES), "{tag}");
        assert!(tag.len() <= 128, "a registry takes no longer one: {tag}");
    }

    #[test]
    fn the_same_program_gives_the_same_bytes() {
        let image = || {
            let mut archive = Vec::new();
            write(&mut elf(183, None).as_slice(), "a:1", &mut archive).unwrap();
            archive
        };
        assert_eq!(image(), image());
    }

    #[test]
    fn a_program_that_needs_libraries_is_refused() {
        let error = write(
            &mut elf(62, Some("/lib64/ld.so")).as_slice(),
            "a:1",
            &mut Vec::new(),
        )
        .unwrap_err();
        assert!(
            error.to_string().contains("asks for /lib64/ld.so"),
            "{error}"
        );
        for other in [&elf(40, None)[..], b"#!/bin/sh\n", b"\x7fELF\x02\x01"] {
            let error = write(&mut &*other, "a:1", &mut Vec::new()).unwrap_err();
            assert!(matches!(error, ImageError::Program(_)), "{error}");
        }
    }
}
