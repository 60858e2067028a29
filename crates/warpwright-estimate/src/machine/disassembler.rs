//! Running `nvdisasm`.

use super::Code;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

/// `nvdisasm` and a folder for its files.
pub struct Disassembler {
    program: PathBuf,
    scratch: PathBuf,
    next: AtomicU64,
}

impl Disassembler {
    /// Runs this program; files are made in a folder of the process below `scratch`, which goes in the end.
    pub fn new(program: &Path, scratch: &Path) -> Result<Self, String> {
        let scratch = scratch.join(format!("sass-{}", std::process::id()));
        std::fs::create_dir_all(&scratch)
            .map_err(|error| format!("cannot make {}: {error}", scratch.display()))?;
        Ok(Disassembler { program: program.to_path_buf(), scratch, next: AtomicU64::new(0) })
    }

    /// The code of a function of a cubin, or of the only one.
    pub fn code(&self, cubin: &[u8], function: Option<&str>) -> Result<Code, String> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let path = self.scratch.join(format!("{number}.cubin"));
        std::fs::write(&path, cubin).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        let output = Command::new(&self.program).args(["-c", "-gp", "-hex"]).arg(&path).output();
        let _ = std::fs::remove_file(&path);
        let output = output.map_err(|error| format!("{} cannot be run: {error}", self.program.display()))?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).trim().to_string());
        }
        Ok(Code::read(&String::from_utf8_lossy(&output.stdout), function))
    }
}

impl Drop for Disassembler {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.scratch);
    }
}
