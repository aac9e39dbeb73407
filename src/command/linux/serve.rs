//! `plumbline serve`: the other end of `load`.

use std::process::ExitCode;

use plumbline_engine::Responder;
use plumbline_generator::{ServeArgs, public_address};
use plumbline_report::load::served;

use crate::command::{print, print_json, refused};

pub(crate) fn run(args: &ServeArgs) -> anyhow::Result<ExitCode> {
    let plan = args.plan()?;
    if !args.i_own_this
        && let Some(address) = public_address(args.listen.ip())
    {
        return refused(format!(
            "{address} is a public address, at which anybody may find this server: listen on a private one, or if that is what you want, say --i-own-this"
        ));
    }
    let interrupted = plumbline_sys::signal::interruption()?;
    let responder = Responder::bind(&plan)?;
    anstream::eprintln!(
        "{} on {}; Ctrl-C ends it",
        plan.workload.name,
        responder.local_addr()
    );
    let result = responder.run(interrupted)?;
    if args.json {
        print_json(&result)?;
    } else {
        print(&served(&plan.workload, &result))?;
    }
    Ok(ExitCode::SUCCESS)
}
