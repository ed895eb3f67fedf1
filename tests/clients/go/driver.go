// go-redis, driven through the script; see ../README.md.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

type script struct {
	Commands [][]string `json:"commands"`
	Pipeline [][]string `json:"pipeline"`
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func say(name string, value any) {
	line, err := json.Marshal(map[string]any{name: value})
	check(err)
	fmt.Println(string(line))
}

// Bytes of a string in which each character stands for the byte with its number.
func encoded(text string) []byte {
	var bytes []byte
	for _, char := range text {
		bytes = append(bytes, byte(char))
	}
	return bytes
}

func decoded(bytes string) string {
	var text []rune
	for at := range len(bytes) {
		text = append(text, rune(bytes[at]))
	}
	return string(text)
}

func normal(reply any) any {
	switch reply := reply.(type) {
	case string:
		return decoded(reply)
	case error:
		return map[string]any{"error": reply.Error()}
	case []any:
		parts := []any{}
		for _, part := range reply {
			parts = append(parts, normal(part))
		}
		return parts
	case map[any]any:
		parts := []any{}
		for key, value := range reply {
			parts = append(parts, normal(key), normal(value))
		}
		return parts
	}
	return reply
}

// What a call returned; an error that is no reply ends the program.
func ask[T any](value T, err error) any {
	var refused redis.Error
	switch {
	case errors.Is(err, redis.Nil):
		return nil
	case errors.As(err, &refused):
		return normal(error(refused))
	}
	check(err)
	return normal(value)
}

func words(command []string) []any {
	var args []any
	for _, word := range command {
		args = append(args, encoded(word))
	}
	// The library knows commands by names that are strings.
	args[0] = command[0]
	return args
}

func pipeline(ctx context.Context, client *redis.Client, commands [][]string) []any {
	pipe := client.Pipeline()
	var asked []*redis.Cmd
	for _, command := range commands {
		asked = append(asked, pipe.Do(ctx, words(command)...))
	}
	// Returns the first error, and each command has its own.
	_, _ = pipe.Exec(ctx)
	var replies []any
	for _, command := range asked {
		replies = append(replies, ask(command.Result()))
	}
	return replies
}

// The library's own methods, and what they return.
func typed(ctx context.Context, r *redis.Client) map[string]any {
	got := map[string]any{}
	got["ping"] = ask(r.Ping(ctx).Result())
	got["set"] = ask(r.Set(ctx, "t", "one", 0).Result())
	got["get"] = ask(r.Get(ctx, "t").Result())
	got["get of nothing"] = ask(r.Get(ctx, "t:nothing").Result())
	got["set if there is none"] = ask(r.SetArgs(ctx, "t", "two", redis.SetArgs{Mode: "NX"}).Result())
	got["set for 100 s"] = ask(r.Set(ctx, "t", "two", 100*time.Second).Result())
	got["ttl"] = int64(r.TTL(ctx, "t").Val() / time.Second)
	got["set and get"] = ask(r.SetArgs(ctx, "t", "three", redis.SetArgs{Get: true}).Result())
	got["setnx"] = ask(r.SetNX(ctx, "t:nx", "1", 0).Result())
	got["setex"] = ask(r.SetEx(ctx, "t:ex", "1", 100*time.Second).Result())
	got["psetex"] = ask(r.Do(ctx, "psetex", "t:ex", 100_000, "1").Text())
	got["pttl"] = int64(r.PTTL(ctx, "t:ex").Val() / time.Millisecond)
	got["getset"] = ask(r.GetSet(ctx, "t", "four").Result())
	got["getex"] = ask(r.GetEx(ctx, "t", 100*time.Second).Result())
	got["getdel"] = ask(r.GetDel(ctx, "t").Result())
	got["append"] = ask(r.Append(ctx, "t:text", "hello").Result())
	got["strlen"] = ask(r.StrLen(ctx, "t:text").Result())
	got["getrange"] = ask(r.GetRange(ctx, "t:text", 1, 3).Result())
	got["setrange"] = ask(r.SetRange(ctx, "t:text", 0, "j").Result())
	got["incr"] = ask(r.Incr(ctx, "t:n").Result())
	got["incrby"] = ask(r.IncrBy(ctx, "t:n", 41).Result())
	got["decr"] = ask(r.Decr(ctx, "t:n").Result())
	got["decrby"] = ask(r.DecrBy(ctx, "t:n", 10).Result())
	got["incrbyfloat"] = ask(r.IncrByFloat(ctx, "t:n", 0.5).Result())
	got["mset"] = ask(r.MSet(ctx, "t:a", "1", "t:b", "2").Result())
	got["mget"] = ask(r.MGet(ctx, "t:a", "t:nothing", "t:b").Result())
	got["msetnx"] = ask(r.MSetNX(ctx, "t:once", "1").Result())
	got["exists"] = ask(r.Exists(ctx, "t:a", "t:b", "t:nothing").Result())
	got["expire"] = ask(r.Expire(ctx, "t:a", 100*time.Second).Result())
	got["pexpire"] = ask(r.PExpire(ctx, "t:a", 100*time.Second).Result())
	got["persist"] = ask(r.Persist(ctx, "t:a").Result())
	got["type"] = ask(r.Type(ctx, "t:a").Result())
	got["touch"] = ask(r.Touch(ctx, "t:a", "t:b").Result())
	keys := []string{}
	for pages := r.Scan(ctx, 0, "t:[ab]", 0).Iterator(); pages.Next(ctx); {
		keys = append(keys, pages.Val())
	}
	got["scan"] = keys
	got["keys"] = ask(r.Keys(ctx, "t:[ab]").Result())
	got["unlink"] = ask(r.Unlink(ctx, "t:a").Result())
	got["del"] = ask(r.Del(ctx, "t:b").Result())
	got["an error"] = ask(r.Incr(ctx, "t:text").Result())
	return got
}

// The library's client of a cluster: where it finds slots, and that keys of all are there.
func cluster(ctx context.Context, at string) *redis.ClusterClient {
	r := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{at}})
	found := 0
	for n := range 200 {
		check(r.Set(ctx, fmt.Sprint("c:", n), n, 0).Err())
	}
	for n := range 200 {
		got, err := r.Get(ctx, fmt.Sprint("c:", n)).Int()
		check(err)
		if got == n {
			found++
		}
	}
	_, err := r.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
		pipe.Set(ctx, "{c}:a", "1", 0)
		pipe.Set(ctx, "{c}:b", "2", 0)
		return nil
	})
	check(err)
	var mutex sync.Mutex
	nodes := []string{}
	check(r.ForEachShard(ctx, func(_ context.Context, node *redis.Client) error {
		mutex.Lock()
		defer mutex.Unlock()
		nodes = append(nodes, node.Options().Addr)
		return nil
	}))
	tagged := ask(r.MGet(ctx, "{c}:a", "{c}:b").Result())
	say("cluster", map[string]any{"nodes": nodes, "found": found, "tagged": tagged})
	return r
}

// Goes on with the same object until it has reconnected.
func again(ctx context.Context, client redis.Cmdable) []any {
	for until := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		set, err := client.Set(ctx, "again", "1", 0).Result()
		if err == nil {
			var got string
			if got, err = client.Get(ctx, "again").Result(); err == nil {
				return []any{set, got}
			}
		}
		if time.Now().After(until) {
			check(err)
		}
	}
}

func goOn(ctx context.Context, client redis.Cmdable) {
	say("waiting", true)
	_, err := bufio.NewReader(os.Stdin).ReadString('\n')
	check(err)
	say("again", again(ctx, client))
}

func main() {
	text, err := os.ReadFile(os.Args[3])
	check(err)
	var todo script
	check(json.Unmarshal(text, &todo))
	say("client", "go-redis "+redis.Version())

	ctx := context.Background()
	if len(os.Args) > 4 && os.Args[4] == "cluster" {
		goOn(ctx, cluster(ctx, os.Args[1]+":"+os.Args[2]))
		return
	}
	client := redis.NewClient(&redis.Options{Addr: os.Args[1] + ":" + os.Args[2]})
	for _, command := range todo.Commands {
		say("reply", ask(client.Do(ctx, words(command)...).Result()))
	}
	say("pipeline", pipeline(ctx, client, todo.Pipeline))
	say("typed", typed(ctx, client))
	goOn(ctx, client)
}
