//! Owns the programs that insert: how each is called, given a statement, and heard.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::inserts::{Insert, Told};
use crate::place::{Engine, Place};

/// A program of another language.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    pub(crate) name: &'static str,
    /// Whether it binds values.
    pub(crate) takes_parameters: bool,
}

/// The programs tried on an engine.
pub(crate) fn of(engine: Engine) -> [Client; 2] {
    let shell = if engine == Engine::Sqlite { "sqlite3" } else { "psql" };
    [
        Client { name: shell, takes_parameters: false },
        Client { name: "python", takes_parameters: true },
    ]
}

impl Client {
    fn command(&self, place: &Place) -> Command {
        let python = || std::env::var("LEASEHOLD_TEST_PYTHON").unwrap_or("python3".to_owned());
        let script = |name| format!("{}/tests/view/{name}", env!("CARGO_MANIFEST_DIR"));
        let mut command = match (place.engine, self.name) {
            (Engine::Sqlite, "python") => {
                let mut command = Command::new(python());
                command.arg(script("insert_sqlite.py"));
                command
            }
            (Engine::Postgres, "python") => {
                let mut command = Command::new(python());
                command.arg(script("insert_postgres.py"));
                command
            }
            (_, name) => Command::new(name),
        };
        match self.name {
            "sqlite3" => command.args(["-batch", "-bail", "-cmd", ".timeout 5000"]),
            "psql" => command.args(["-X", "-v", "ON_ERROR_STOP=1", "-f", "-"]),
            _ => &mut command,
        };
        command.arg(place.address());
        command
    }

    /// Gives the program one insert, and hears it out.
    pub(crate) fn run(&self, place: &Place, insert: &Insert) -> Told {
        let sql = insert.sql.replace("VIEW", &place.view());
        let text = if self.name != "python" {
            format!("{}{sql};\n", self.begin(place))
        } else {
            let values = if insert.parameters.is_empty() { "[]" } else { insert.parameters };
            let values: serde_json::Value = serde_json::from_str(values).expect("values");
            let role = (place.engine == Engine::Postgres).then(|| place.role());
            serde_json::json!({ "sql": sql, "values": values, "role": role }).to_string()
        };
        let mut child = self
            .command(place)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}; run scripts/clients", self.name));
        let mut stdin = child.stdin.take().expect("its input");
        stdin.write_all(text.as_bytes()).expect("written");
        drop(stdin);
        let output = child.wait_with_output().expect("ended");
        let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.push_str(&String::from_utf8_lossy(&output.stderr));
        Told { is_ok: output.status.success(), text }
    }

    fn begin(&self, place: &Place) -> String {
        match self.name {
            "psql" => format!("set session authorization {};\n", place.role()),
            _ => String::new(),
        }
    }
}
