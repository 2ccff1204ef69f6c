# cachedyno with Redis, memcached and MariaDB, which it starts by itself. Records and the data of private servers are
# in /records, which should be a volume or a directory of the host: an image's own file system is slow.
#
#   docker build -t cachedyno .
#   docker run --rm -v "$PWD:/records" --user "$(id -u):$(id -g)" cachedyno run sessions

FROM node:22-bookworm-slim AS web
WORKDIR /source/web
COPY web/package.json web/package-lock.json ./
RUN npm ci --no-audit --no-fund
COPY web/ ./
RUN npm run --silent build

FROM rust:1-bookworm AS build
WORKDIR /source
# With .git, so that a record says which commit measured it.
COPY . .
COPY --from=web /source/web/dist web/dist
RUN cargo build --locked --release --package cachedyno \
    && strip target/release/cachedyno

FROM debian:bookworm-slim
RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
        ca-certificates mariadb-client-core mariadb-server-core memcached redis-server tini \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home cachedyno \
    && install -d -m 1777 /records
COPY --from=build /source/target/release/cachedyno /usr/local/bin/
USER cachedyno
WORKDIR /records
VOLUME /records
# As process 1, tini passes signals on and reaps what killed servers leave.
ENTRYPOINT ["tini", "--", "cachedyno"]
CMD ["--help"]
