//! The disk under test: file system, mount options, device. Source: proc(5) for `mountinfo`.

use super::facts::{Facts, Root, bytes, chosen, warn_if};
use crate::free::FreeSpace;
use std::path::{Path, PathBuf};

const GIB: u64 = 1 << 30;

/// File systems whose files are on another machine.
const NETWORK: [&str; 8] =
    ["nfs", "nfs4", "cifs", "smb3", "ceph", "9p", "fuse.sshfs", "fuse.glusterfs"];

/// File systems in memory.
const MEMORY: [&str; 2] = ["tmpfs", "ramfs"];
/// Other file systems without swap files: they write a changed block elsewhere (swapon(8)).
const COPYING: [&str; 4] = ["overlay", "btrfs", "zfs", "bcachefs"];

/// One line of `mountinfo`.
struct Mount {
    point: PathBuf,
    /// Major and minor number.
    device: String,
    kind: String,
    source: String,
    options: String,
}

/// The facts of `disk` in the group of that name.
pub(super) fn facts(root: &Root, (group, disk): (&str, &Path), facts: &mut Facts) {
    let path = disk.canonicalize().unwrap_or_else(|_| disk.into());
    facts.fact(group, "directory", path.display().to_string());
    space(group, &path, facts);
    let table = root.text("proc/self/mountinfo").unwrap_or_default();
    let Some(mount) = mount_of(&table, &path) else { return };
    facts.judged(group, "file system", &mount.kind, file_system_warning(&mount.kind));
    let synchronous = mount.options.split(',').any(|o| o == "sync" || o == "dirsync");
    let warning = warn_if(
        synchronous,
        "every write waits for the disk, unlike on common hosts; mount without `sync`",
    );
    facts.judged(group, "mount options", mount.options.clone(), warning);
    device(root, (group, &mount), facts);
}

fn space(group: &str, path: &Path, facts: &mut Facts) {
    let Some(free) = FreeSpace::on(path).disk_bytes else { return };
    let warning = warn_if(
        free < GIB,
        "writes slow down or fail when the disk fills up; make room or choose another directory",
    );
    facts.judged(group, "free space", bytes(free), warning);
}

fn file_system_warning(kind: &str) -> Option<String> {
    if MEMORY.contains(&kind) {
        let text = "files are in memory, so no disk is measured; choose a directory on a real disk";
        return Some(text.into());
    }
    if NETWORK.contains(&kind) {
        let text = "files are on another machine, so the network is measured too; choose a \
                    directory on a local disk";
        return Some(text.into());
    }
    warn_if(
        kind == "overlay",
        "files of a container's own layer are slower to create and to find; use a volume",
    )
}

/// The mount that contains `path`: the longest mount point above it, or the last such mount.
fn mount_of(table: &str, path: &Path) -> Option<Mount> {
    let mounts = table.lines().filter_map(parse_mount).filter(|m| path.starts_with(&m.point));
    mounts.max_by_key(|m| m.point.components().count())
}

/// `id parent major:minor root point options [tag]... - type source super-options`
fn parse_mount(line: &str) -> Option<Mount> {
    let (first, second) = line.split_once(" - ")?;
    let first: Vec<&str> = first.split(' ').collect();
    let second: Vec<&str> = second.split(' ').collect();
    let mut options: Vec<&str> = first.get(5)?.split(',').collect();
    for option in second.get(2).unwrap_or(&"").split(',') {
        if !option.is_empty() && !options.contains(&option) {
            options.push(option);
        }
    }
    Some(Mount {
        point: PathBuf::from(unescape(first.get(4)?)),
        device: (*first.get(2)?).into(),
        kind: (*second.first()?).into(),
        source: unescape(second.get(1)?),
        options: options.join(","),
    })
}

/// Decodes spaces, tabs, line feeds and backslashes, which are escaped in octal as `\ooo`.
pub(crate) fn unescape(text: &str) -> String {
    let escapes = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")];
    escapes.into_iter().fold(text.to_string(), |text, (from, to)| text.replace(from, to))
}

/// Major and minor number, as in `254:0`, of the disk with the files of a directory: the whole disk
/// of a partition. `None` if they are on no block device.
pub(super) fn number(root: &Root, directory: &Path) -> Option<String> {
    let path = directory.canonicalize().ok()?;
    let mount = mount_of(&root.text("proc/self/mountinfo")?, &path)?;
    let number = std::fs::read_to_string(whole_disk(root, &mount)?.join("dev")).ok()?;
    Some(number.trim().into())
}

/// The file system of a directory if it takes no swap files; `None` if it may.
pub(super) fn refuses_swap(root: &Root, directory: &Path) -> Option<String> {
    let path = directory.canonicalize().ok()?;
    let mount = mount_of(&root.text("proc/self/mountinfo")?, &path)?;
    let mut known = MEMORY.iter().chain(&NETWORK).chain(&COPYING);
    known.any(|kind| *kind == mount.kind).then_some(mount.kind)
}

/// The directory of a mount's disk in `/sys`: the whole disk of a partition.
fn whole_disk(root: &Root, mount: &Mount) -> Option<PathBuf> {
    let link = match mount.source.strip_prefix("/dev/") {
        // Some file systems report their own device number.
        Some(name) if !name.contains('/') => root.path(&format!("sys/class/block/{name}")),
        _ => root.path(&format!("sys/dev/block/{}", mount.device)),
    };
    let directory = link.canonicalize().ok()?;
    match directory.parent() {
        Some(parent) if !directory.join("queue").is_dir() => Some(parent.to_path_buf()),
        _ => Some(directory),
    }
}

/// Facts of the block device; a partition uses the queue of its whole disk.
fn device(root: &Root, (group, mount): (&str, &Mount), facts: &mut Facts) {
    let Some(whole) = whole_disk(root, mount) else {
        facts.fact(group, "device", format!("{} (no block device)", mount.source));
        return;
    };
    let read = |name: &str| {
        let text = std::fs::read_to_string(whole.join(name)).ok()?;
        (!text.trim().is_empty()).then(|| text.trim().to_string())
    };
    let model = read("device/model").or_else(|| read("dm/name")).or_else(|| read("md/level"));
    let name = whole.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let is_virtual = model.is_none() && name.starts_with("vd");
    let described = match (&model, is_virtual) {
        (Some(model), _) => format!("{name} ({model})"),
        (None, true) => format!("{name} (virtual disk)"),
        (None, false) => name,
    };
    facts.fact(group, "device", described);
    rotation(group, (read("queue/rotational").as_deref(), is_virtual), facts);
    if let Some(scheduler) = read("queue/scheduler") {
        facts.fact(group, "scheduler", chosen(&scheduler));
    }
    if let Some(cache) = read("queue/write_cache") {
        facts.fact(group, "write cache", cache);
    }
}

/// A virtual disk often reports itself as rotational, whatever the real device is.
fn rotation(group: &str, (text, is_virtual): (Option<&str>, bool), facts: &mut Facts) {
    let (value, warning) = match (text, is_virtual) {
        (Some("0"), _) => ("no", None),
        (Some("1"), true) => ("yes, but unreliable (virtual disk)", None),
        (Some("1"), false) => {
            let text = "each access waits for the disk to rotate; use a solid-state disk";
            ("yes", Some(text.to_string()))
        }
        _ => return,
    };
    facts.judged(group, "rotational", value, warning);
}
