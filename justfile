# Short cuts only: nothing needs `just`.

default:
    @just --list

# What to run before every commit.
check:
    .ci/run format lint docs scripts

# Every test, on both engines; arguments go to `cargo test`.
test *arguments:
    scripts/test {{arguments}}

# Everything that a change must pass.
ci:
    .ci/run

# The benchmarks, beside a PostgreSQL that keeps its promises to the disk.
bench *arguments:
    scripts/postgres-throwaway run --durable -- cargo run --release -p leasehold-cli -- bench {{arguments}}

# The speed table: ratios to raw loops of the same work, taking turns.
limit *arguments:
    scripts/postgres-throwaway run --durable -- cargo bench -p leasehold --bench limit -- {{arguments}}

# Writes the tests' names into docs/contract.md.
contract:
    LEASEHOLD_UPDATE_CONTRACT=1 cargo test --test tidy the_contract
