//! `plumbline image -o`: an archive that is whole, wherever it is to go.

use std::fs;
use std::os::unix::fs::{FileTypeExt as _, symlink};
use std::path::Path;
use std::process::Command;

use nix::sys::stat::Mode;

use crate::world::{plumbline, stderr};

/// A static program of nothing, for 64-bit x86 (System V ABI, chapter 4).
fn program(directory: &Path) -> String {
    let mut elf = [0; 64];
    elf[..7].copy_from_slice(&[0x7f, b'E', b'L', b'F', 2, 1, 1]);
    elf[18] = 62;
    (elf[32], elf[54]) = (64, 56);
    let path = directory.join("program");
    fs::write(&path, elf).unwrap();
    path.to_str().unwrap().to_owned()
}

fn image(program: &str, output: &Path) -> Command {
    plumbline(&[
        "image",
        "--program",
        program,
        "-o",
        output.to_str().unwrap(),
    ])
}

#[track_caller]
fn succeeds(mut command: Command) {
    let output = command.output().expect("the program starts");
    assert!(output.status.success(), "{}", stderr(&output));
}

#[test]
fn an_image_goes_where_a_link_leads() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let program = program(directory.path());
    succeeds(image(&program, &at("plain.tar")));
    symlink("kept.tar", at("link.tar")).unwrap();
    fs::write(at("kept.tar"), "an earlier one").unwrap();
    succeeds(image(&program, &at("link.tar")));
    assert!(at("link.tar").is_symlink());
    assert_eq!(
        fs::read(at("kept.tar")).unwrap(),
        fs::read(at("plain.tar")).unwrap()
    );
}

#[test]
fn a_pipe_and_a_device_are_written_to_and_stay() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let program = program(directory.path());
    succeeds(image(&program, &at("plain.tar")));
    nix::unistd::mkfifo(&at("pipe"), Mode::from_bits_truncate(0o600)).unwrap();
    let pipe = at("pipe");
    let reader = std::thread::spawn(move || fs::read(pipe).unwrap());
    succeeds(image(&program, &at("pipe")));
    assert_eq!(reader.join().unwrap(), fs::read(at("plain.tar")).unwrap());
    let kind = |path: &Path| fs::symlink_metadata(path).unwrap().file_type();
    assert!(kind(&at("pipe")).is_fifo());
    succeeds(image(&program, Path::new("/dev/null")));
    assert!(kind(Path::new("/dev/null")).is_char_device());
}

#[test]
fn a_program_that_is_none_leaves_what_was_there() {
    let directory = tempfile::tempdir().unwrap();
    let kept = directory.path().join("kept.tar");
    fs::write(&kept, "an earlier one").unwrap();
    let script = directory.path().join("script");
    fs::write(&script, "#!/bin/sh\n").unwrap();
    let mut command = image(script.to_str().unwrap(), &kept);
    let output = command.output().expect("the program starts");
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert_eq!(fs::read(&kept).unwrap(), b"an earlier one");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
}
