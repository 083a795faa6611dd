//! `cargo xtask deb`: a Debian package of the `clearway` command, with its service.
//!
//! The files of the package are in `cli/debian`; the binary itself writes its man page and completions. The same commit gives the
//! same bytes: times are the commit's, owners are root.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the files of the package stand.
const SOURCES: &str = "cli/debian";
/// Where it is put together, below the build directory.
const STAGE: &str = "target/deb";
/// The maintainer where `DEBFULLNAME` and `DEBEMAIL` name none, as for Debian's own tools.
const MAINTAINER: [&str; 2] = ["The authors of Clearway", "clearway@localhost"];
const DESCRIPTION: &str = "transactional SQL database that PostgreSQL's clients can talk to
 Clearway serves a directory with tables in PostgreSQL's protocol and language,
 and shows every wait: who waits for whom, and what took the lock. The package
 holds the command, a service, its settings and its rules of access.";

/// Builds the package; its path. `arguments`: `--binary FILE` takes a program that is built already, `--fast` packs it less well.
///
/// # Errors
/// A step failed: which one, and what it said.
pub fn build(root: &Path, mut arguments: impl Iterator<Item = String>) -> Result<PathBuf, String> {
    let (mut binary, mut packed) = (None, ["-Zxz", "-z6"]);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--binary" => binary = Some(PathBuf::from(arguments.next().ok_or("--binary needs a file")?)),
            "--fast" => packed = ["-Zgzip", "-z1"],
            _ => return Err("usage: cargo xtask deb [--binary FILE] [--fast]".to_owned()),
        }
    }
    let binary = match binary {
        Some(binary) => binary,
        None => release(root)?,
    };
    let stage = root.join(STAGE).join("tree");
    if stage.exists() {
        fs::remove_dir_all(&stage).map_err(|error| format!("{}: {error}", stage.display()))?;
    }
    let package = Package { root, stage, binary };
    let version = package.output(&["--version"])?;
    let version = version.trim().strip_prefix("clearway ").ok_or("the binary tells no version")?.to_owned();
    package.program()?;
    package.settings()?;
    package.documents(&version)?;
    package.control(&version)?;
    package.same_times()?;
    let architecture = run(Command::new("dpkg").arg("--print-architecture"))?;
    let out = root.join(STAGE).join(format!("clearway_{version}_{}.deb", architecture.trim()));
    run(Command::new("dpkg-deb")
        .arg("--root-owner-group")
        .args(packed)
        .arg("--build")
        .arg(&package.stage)
        .arg(&out)
        .env("SOURCE_DATE_EPOCH", epoch(root)?))?;
    Ok(out)
}

/// The program as it is released.
fn release(root: &Path) -> Result<PathBuf, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    run(Command::new(cargo).args(["build", "--release", "-p", "clearway-cli"]).current_dir(root))?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    Ok(target.join("release/clearway"))
}

/// The newest version of the C library among those that a program names.
fn needs(names: &str) -> String {
    let newest = names.lines().filter_map(|name| name.strip_prefix("GLIBC_2.")?.parse::<u32>().ok()).max();
    newest.map_or_else(|| "libc6".to_owned(), |minor| format!("libc6 (>= 2.{minor})"))
}

/// The time of the commit.
fn epoch(root: &Path) -> Result<String, String> {
    let time = run(Command::new("git").args(["log", "-1", "--format=%ct"]).current_dir(root))?;
    Ok(time.trim().to_owned())
}

struct Package<'a> {
    root: &'a Path,
    /// The tree that is packed.
    stage: PathBuf,
    binary: PathBuf,
}

impl Package<'_> {
    /// What the program writes to standard output.
    fn output(&self, arguments: &[&str]) -> Result<String, String> {
        run(Command::new(&self.binary).args(arguments))
    }

    fn write(&self, path: &str, mode: u32, bytes: &[u8]) -> Result<(), String> {
        let path = self.stage.join(path);
        let written = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(&path, bytes));
        let set = written.and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(mode)));
        set.map_err(|error| format!("{}: {error}", path.display()))
    }

    /// A file of the repository.
    fn copy(&self, from: &str, path: &str, mode: u32) -> Result<(), String> {
        let from = self.root.join(from);
        let bytes = fs::read(&from).map_err(|error| format!("{}: {error}", from.display()))?;
        self.write(path, mode, &bytes)
    }

    /// Name and address of the package's builder.
    fn maintainer() -> String {
        let [name, address] =
            ["DEBFULLNAME", "DEBEMAIL"].map(|name| std::env::var(name).ok().filter(|text| !text.is_empty()));
        format!("{} <{}>", name.as_deref().unwrap_or(MAINTAINER[0]), address.as_deref().unwrap_or(MAINTAINER[1]))
    }

    /// A file that Debian wants packed.
    fn packed(&self, path: &str, text: &[u8]) -> Result<(), String> {
        self.write(path, 0o644, text)?;
        run(Command::new("gzip").args(["-9", "-n", "-f"]).arg(self.stage.join(path))).map(drop)
    }

    fn program(&self) -> Result<(), String> {
        let path = self.stage.join("usr/bin/clearway");
        self.write("usr/bin/clearway", 0o755, b"")?;
        run(Command::new("strip")
            .args(["--strip-unneeded", "--remove-section=.comment", "-o"])
            .args([&path, &self.binary]))?;
        run(Command::new("chmod").arg("0755").arg(&path))?;
        self.copy(&format!("{SOURCES}/clearway.service"), "lib/systemd/system/clearway.service", 0o644)
    }

    fn settings(&self) -> Result<(), String> {
        for name in ["clearway.conf", "access"] {
            self.copy(&format!("{SOURCES}/{name}"), &format!("etc/clearway/{name}"), 0o644)?;
        }
        self.write("DEBIAN/conffiles", 0o644, b"/etc/clearway/access\n/etc/clearway/clearway.conf\n")
    }

    fn documents(&self, version: &str) -> Result<(), String> {
        self.packed("usr/share/man/man1/clearway.1", self.output(&["man"])?.as_bytes())?;
        for (shell, path) in [
            ("bash", "usr/share/bash-completion/completions/clearway"),
            ("zsh", "usr/share/zsh/vendor-completions/_clearway"),
            ("fish", "usr/share/fish/vendor_completions.d/clearway.fish"),
        ] {
            self.write(path, 0o644, self.output(&["completions", shell])?.as_bytes())?;
        }
        self.copy(&format!("{SOURCES}/copyright"), "usr/share/doc/clearway/copyright", 0o644)?;
        self.copy(&format!("{SOURCES}/lintian-overrides"), "usr/share/lintian/overrides/clearway", 0o644)?;
        let news = self.root.join("CHANGELOG.md");
        let news = fs::read(&news).map_err(|error| format!("{}: {error}", news.display()))?;
        self.packed("usr/share/doc/clearway/NEWS", &news)?;
        // Debian's own form names the package's versions; what each brings is in NEWS.
        let date = run(Command::new("date").args(["-u", "-R", "-d", &format!("@{}", epoch(self.root)?)]))?;
        let entry = format!(
            "clearway ({version}) unstable; urgency=medium\n\n  * Version {version}: NEWS.gz says what it brings.\n\n -- {}  {}\n",
            Package::maintainer(),
            date.trim()
        );
        self.packed("usr/share/doc/clearway/changelog", entry.as_bytes())
    }

    fn control(&self, version: &str) -> Result<(), String> {
        let program = self.stage.join("usr/bin/clearway");
        let libc = needs(&run(Command::new("grep").args(["-aohE", "GLIBC_2\\.[0-9]+"]).arg(program))?);
        for name in ["postinst", "prerm", "postrm"] {
            self.copy(&format!("{SOURCES}/{name}"), &format!("DEBIAN/{name}"), 0o755)?;
        }
        let (mut sums, mut size) = (String::new(), 0);
        for (path, bytes) in files(&self.stage)?.into_iter().filter(|(path, _)| !path.starts_with("DEBIAN/")) {
            size += bytes.div_ceil(1024);
            let sum = run(Command::new("md5sum").arg(self.stage.join(&path)))?;
            sums += &format!("{}  {path}\n", sum.split(' ').next().unwrap_or_default());
        }
        self.write("DEBIAN/md5sums", 0o644, sums.as_bytes())?;
        let architecture = run(Command::new("dpkg").arg("--print-architecture"))?;
        let control = format!(
            "Package: clearway\nVersion: {version}\nArchitecture: {}\nMaintainer: {}\nInstalled-Size: {size}\n\
             Depends: adduser, init-system-helpers (>= 1.54), libgcc-s1, {libc}\nSection: database\nPriority: optional\n\
             Description: {DESCRIPTION}\n",
            architecture.trim(),
            Package::maintainer(),
        );
        self.write("DEBIAN/control", 0o644, control.as_bytes())
    }

    /// Modes and times that do not depend on who builds, and when.
    fn same_times(&self) -> Result<(), String> {
        let stage = &self.stage;
        run(Command::new("find").arg(stage).args(["-type", "d", "-exec", "chmod", "0755", "{}", "+"]))?;
        let time = format!("@{}", epoch(self.root)?);
        run(Command::new("find").arg(stage).args(["-exec", "touch", "-h", "-d", &time, "{}", "+"])).map(drop)
    }
}

/// The files below a directory with their sizes, in the order of their names.
fn files(directory: &Path) -> Result<Vec<(String, u64)>, String> {
    let listed = run(Command::new("find").args([".", "-type", "f", "-printf", "%P %s\n"]).current_dir(directory))?;
    let mut files: Vec<(String, u64)> = listed
        .lines()
        .filter_map(|line| line.rsplit_once(' '))
        .filter_map(|(path, size)| Some((path.to_owned(), size.parse().ok()?)))
        .collect();
    files.sort();
    Ok(files)
}

/// Runs a program; what it wrote.
fn run(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("{name}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{name}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_of_the_c_library_is_found() {
        assert_eq!(needs("GLIBC_2.9\nGLIBC_2.34\nGLIBC_2.3\n"), "libc6 (>= 2.34)");
        assert_eq!(needs(""), "libc6");
    }
}
