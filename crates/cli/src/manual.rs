//! Owns the manual page: one for the whole command, with a section for each of its commands, made from the
//! arguments themselves.

use std::io::{Result, Write};

use clap::Command;
use clap_mangen::Man;

use crate::variables;

/// Makes the page.
///
/// # Errors
/// None that a buffer in memory gives.
pub fn page(mut command: Command) -> Result<Vec<u8>> {
    command.build();
    let (mut page, whole) = (Vec::new(), Man::new(command.clone()));
    whole.render_title(&mut page)?;
    whole.render_name_section(&mut page)?;
    whole.render_synopsis_section(&mut page)?;
    whole.render_description_section(&mut page)?;
    whole.render_options_section(&mut page)?;
    page.write_all(variables::section().as_bytes())?;
    sections(&command, &mut page)?;
    whole.render_version_section(&mut page)?;
    Ok(page)
}

/// The commands below one, each followed by its own.
fn sections(above: &Command, page: &mut Vec<u8>) -> Result<()> {
    let shown = |command: &&Command| !command.is_hide_set() && command.get_name() != "help";
    for command in above.get_subcommands().filter(shown) {
        if command.has_subcommands() {
            sections(command, page)?;
        } else {
            section(command, page)?;
        }
    }
    Ok(())
}

fn section(command: &Command, page: &mut Vec<u8>) -> Result<()> {
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name());
    writeln!(page, ".SH \"{}\"", name.to_uppercase())?;
    let (mut parts, man) = (Vec::new(), Man::new(command.clone()));
    man.render_synopsis_section(&mut parts)?;
    man.render_description_section(&mut parts)?;
    man.render_options_section(&mut parts)?;
    if command.get_after_long_help().is_some() || command.get_after_help().is_some() {
        man.render_extra_section(&mut parts)?;
    }
    // What is a section of a page of its own is a part of one here.
    let parts = String::from_utf8_lossy(&parts).replace("\n.SH ", "\n.SS ");
    page.write_all(parts.as_bytes())
}
