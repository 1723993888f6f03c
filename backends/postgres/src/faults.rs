//! Owns the texts by which a test has the server itself fail a step: each error is the server's, with the
//! SQLSTATE that was asked for, and takes the way of every other. Compiled only with `failpoints`.

/// The session is ended before the step.
pub const ENDED: i32 = -1;
/// The session is ended after the step, so that its reply is lost.
pub const REPLY_LOST: i32 = -2;

const END: &str = "select pg_terminate_backend(pg_backend_pid())";

/// The fault of a SQLSTATE.
///
/// # Panics
/// At a text that is none.
pub fn sqlstate(code: &str) -> i32 {
    assert_eq!(code.len(), 5, "a SQLSTATE has five characters");
    #[allow(clippy::expect_used, reason = "only a test asks, and names its own codes")]
    i32::from_str_radix(code, 36).expect("a SQLSTATE is of digits and letters")
}

fn code_of(mut fault: i32) -> String {
    let mut code = Vec::with_capacity(5);
    for _ in 0..5 {
        let digit = u32::try_from(fault % 36).unwrap_or_default();
        code.push(char::from_digit(digit, 36).unwrap_or('0').to_ascii_uppercase());
        fault /= 36;
    }
    code.iter().rev().collect()
}

fn raise(fault: i32) -> String {
    format!("raise exception using errcode = '{}', message = 'a fault of a test';", code_of(fault))
}

/// What is sent instead of a statement.
pub(crate) fn text(fault: i32) -> String {
    if fault < 0 { END.to_owned() } else { format!("do $test$ begin {} end $test$", raise(fault)) }
}

/// What is sent instead of a commit, which the server then refuses or loses; it ends the transaction
/// in any case.
pub(crate) fn text_of_commit(fault: i32) -> String {
    match fault {
        ENDED => END.to_owned(),
        REPLY_LOST => format!("commit; {END}"),
        _ => format!(
            "create function pg_temp.leasehold_fault() returns trigger language plpgsql as
               $test$ begin {} end $test$;
             create temporary table leasehold_fault (it integer) on commit drop;
             create constraint trigger leasehold_fault after insert on pg_temp.leasehold_fault
               deferrable initially deferred for each row execute function pg_temp.leasehold_fault();
             insert into pg_temp.leasehold_fault values (1);
             commit",
            raise(fault)
        ),
    }
}

/// What is sent instead of a statement that is a transaction by itself, or after it, so that its reply
/// is as good as lost.
pub(crate) fn text_of_alone(fault: i32) -> (bool, String) {
    (fault == REPLY_LOST, text(fault))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves: ERR-1
    #[test]
    fn a_code_is_the_one_that_was_asked_for() {
        for code in ["40001", "40P01", "08006", "57P01", "ZZZZZ"] {
            assert_eq!(code_of(sqlstate(code)), code);
        }
    }
}
