export default function Activity(_: any) {
  return <div className="screen empty">Activity</div>;
}
